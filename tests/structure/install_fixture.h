// A directory to install into, and shell commands that know it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "process.h"

namespace mtrace::test {

class InstallFixture : public ::testing::Test {
 protected:
  InstallFixture() { std::filesystem::create_directory(root_); }

  // Runs a script in the source directory. It finds this directory, that of the build, the one to
  // install into and one for other files in SOURCE, BUILD, ROOT and TMP.
  Result shell(const std::string& text) const {
    Command command;
    command.argv = {"/bin/bash", "-c", "set -e -o pipefail; cd \"$SOURCE\"\n" + text};
    command.env = plain_environment(temp_.path());
    command.env["SOURCE"] = source_dir();
    command.env["BUILD"] = build_dir();
    command.env["ROOT"] = root_;
    command.env["TMP"] = temp_.path();
    return run(command);
  }
  // The same, for a script that must succeed. Returns its standard output.
  std::string good(const std::string& text) const {
    const Result result = shell(text);
    EXPECT_TRUE(result.exited(0)) << text << '\n'
                                  << result.how() << '\n'
                                  << result.out << result.err;
    return result.out;
  }

  TemporaryDirectory temp_;
  std::string root_ = temp_ / "root";
};

}  // namespace mtrace::test
