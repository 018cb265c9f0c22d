#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/file.h"

namespace mtrace::base {
namespace {

std::vector<std::string> lines_of(const std::string& content) {
  const int file = memfd_create("lines", MFD_CLOEXEC);
  EXPECT_EQ(write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  std::vector<std::string> lines;
  char text[8];
  each_line(file, text, [&](const char* line, size_t length) {
    lines.emplace_back(line, length);
    return true;
  });
  close(file);
  return lines;
}

TEST(LinesTest, ALineThatIsTooLongIsLeftOutWhole) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines_of("a\n\nbcdefgh\ni\n"), (Lines{"a", "", "bcdefgh", "i"}));
  EXPECT_EQ(lines_of("a\n12345678\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("1234567812345678123\nb\n1234567812\n"), Lines{"b"});
}

}  // namespace
}  // namespace mtrace::base
