// A program whose functions and lines are known, and memlogs that name addresses in it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tool_test.h"

namespace mtrace::test {

// Without the newlines at the end.
std::string strip_end(std::string text);

// The build-id of an ELF file, in hex.
std::string build_id_of(const std::string& file);

// The addresses of the marks in a file: hex without leading zeros.
std::map<std::string, std::string> marks_of(const std::string& file);

// "(MODULE+0xHEX)" for each mark, in the order that expect_known() wants.
std::vector<std::string> frames_at_marks(const std::string& module, const std::string& file);

// "# module: ..." with or without a build-id.
std::string module_line(const std::string& file, const std::string& build_id);

class Resolve : public testing::Test {
 protected:
  // Compiles tests/fixtures/known_stack.cc to `name` in the temporary directory.
  std::string build(const std::string& name, const std::string& flags);

  // Writes a memlog with the frames, resolves it with `options`, and returns the frame lines.
  std::vector<std::string> resolve(const std::vector<std::string>& frames, const std::string& after,
                                   std::vector<std::string> options = {});

  bool says(const std::string& text) const { return text_.find(text) != std::string::npos; }

  // What the frames at the five marks must become.
  static void expect_known(const std::vector<std::string>& lines, const std::string& module,
                           const std::map<std::string, std::string>& marks);

  TemporaryDirectory directory_;
  std::string text_;  // of the resolved memlog
};

}  // namespace mtrace::test
