// What the documents promise must be what there is.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "directories.h"
#include "expect.h"
#include "files.h"

namespace mtrace::test {
namespace {

std::string source_file(const std::string& name) {
  const std::string text = read_file(source_dir() + '/' + name);
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

TEST(DocumentsTest, PageNamesEveryOptionWithItsDefault) {
  const std::string table = source_file("src/format/options.def");
  const std::string page = source_file("index.html");
  const std::regex option(R"re(MTRACE_OPTION\(\w+, "(\w+)", \w+, "([^"]*)")re");
  int options = 0;
  for (std::sregex_iterator at(table.begin(), table.end(), option), end; at != end; ++at) {
    ++options;
    const std::string row = "<td><code>" + at->str(1) + "</code></td>";
    const size_t place = page.find(row);
    ASSERT_NE(place, std::string::npos) << at->str(1);
    const std::string standard = at->str(2).empty() ? "unset" : at->str(2);
    const std::string text = page.substr(place, page.find("</tr>", place) - place);
    EXPECT_HAS(text, "default " + standard + "<");
  }
  EXPECT_GE(options, 9);
}

TEST(DocumentsTest, PageNamesEveryCommandAndOrder) {
  const std::string page = source_file("index.html");
  const auto expect_each = [&](const std::string& file, const std::regex& name, int least,
                               const std::string& before) {
    const std::string text = source_file(file);
    int found = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at, ++found) {
      EXPECT_HAS(page, "<code>" + before + at->str(1) + "</code>") << at->str(1);
    }
    EXPECT_GE(found, least) << file;
  };
  expect_each("src/memlog/surface/cli/command.h", std::regex(R"(const Command& (\w+)_command\(\))"),
              6, "memlog ");
  expect_each("src/memlog/surface/cli/report_options.cc", std::regex(R"re(\{"(\w+)", Order::)re"),
              10, "");
}

TEST(DocumentsTest, ReadmeNamesFilesThatExist) {
  const std::string readme = source_file("README");
  const std::regex file(R"((doc/[a-z/-]+\.md|include/[a-z]+\.h|index\.html))");
  int files = 0;
  for (std::sregex_iterator at(readme.begin(), readme.end(), file), end; at != end; ++at) {
    ++files;
    source_file(at->str());
  }
  EXPECT_GE(files, 5);
}

}  // namespace
}  // namespace mtrace::test
