#include "shell.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace mtrace::test {
namespace {

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t sign = text.find('=');
    if (sign != text.npos) variables.emplace(text.substr(0, sign), text.substr(sign + 1));
  }
  return variables;
}

}  // namespace

std::string shell_quoted(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + '\'';
}

Command shell_command(const std::string& text) {
  Command shell;
  shell.argv = {"/bin/sh", "-c", text};
  shell.env = own_environment();
  return shell;
}

std::string run_shell(const std::string& command) {
  const Result result = run(shell_command(command));
  EXPECT_TRUE(result.exited(0)) << command << '\n' << result.how() << '\n' << result.err;
  return result.out;
}

}  // namespace mtrace::test
