// memlog show --source on programs whose lines and sizes are known.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>

#include "model/symbols/symbolizer.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

// Line 6 allocates 3 blocks of 1,000 bytes, line 10 one of 64; line 15 calls both.
constexpr char kSourceText[] = R"(#include <stdlib.h>

void* volatile kept;

__attribute__((noinline)) void open_session(size_t bytes) {
	kept = malloc(bytes);
}

__attribute__((noinline)) void open_log(void) {
  kept = malloc(64);  /* a "line" \n */
}

__attribute__((noinline)) void serve(void) {
  for (int i = 0; i < 3; ++i) {
    open_session(1000); open_log(); free(kept);
  }
}

int main(void) {
  serve();
  open_log();
}
)";

class Source : public testing::Test {
 protected:
  void SetUp() override {
    ::mkdir((directory_ / "src").c_str(), 0755);
    write_file(directory_ / "src/app.c", kSourceText);
    shell("cd {} && gcc -g -O0 -o app src/app.c && {}/memlog run -q -o reports ./app",
          directory_.path(), build_dir());
  }
  // What the command prints in a directory below the temporary one.
  std::string show(const std::string& words, const std::string& where = ".") {
    return shell("cd {}/{} && {}/memlog show --no-header {} 2>&1; echo \"status $?\"",
                 directory_.path(), where, build_dir(), Script{words});
  }
  // "FLAT CUMULATIVE" of line `number`.
  static std::string numbers(const std::string& text, int number) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string flat;
      std::string cumulative;
      std::string at;
      words >> flat >> cumulative >> at;
      if (at == std::to_string(number)) return flat + " " + cumulative;
    }
    return "";
  }
  TemporaryDirectory directory_;
};

TEST_F(Source, LinesHaveTheirBytes) {
  const std::string text = show("--source reports");
  EXPECT_EQ(numbers(text, 6), "3000 3000") << text;
  EXPECT_EQ(numbers(text, 10), "64 64") << text;
  EXPECT_EQ(numbers(text, 15), ". 3000") << text;
  EXPECT_EQ(numbers(text, 20), ". 3000") << text;
  EXPECT_EQ(numbers(text, 21), ". 64") << text;
  EXPECT_EQ(numbers(text, 5), ". .") << text;
  // The largest first, under its function and path; text as it stands, tabs as blanks.
  const size_t first =
      text.find("        3000         3000  open_session  " + directory_.path() + "/src/app.c\n");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_LT(first, text.find("64           64  open_log")) << text;
  EXPECT_HAS(text, "      6          kept = malloc(bytes);\n");
  EXPECT_HAS(text, "/* a \"line\" \\n */\n");
  EXPECT_LACKS(text, "note:");
}

TEST_F(Source, OtherQuantitiesAndFewerFunctions) {
  EXPECT_EQ(numbers(show("--source --by blocks reports"), 6), "3 3");
  const std::string sum = show("--source --sum -n 1 reports");
  EXPECT_EQ(numbers(sum, 6), "3000 3000") << sum;
  EXPECT_EQ(numbers(sum, 10), "") << sum;
  EXPECT_HAS(sum, "... 3 more functions (-n 0)\n");
}

// Moved, the files are found by --source-path, by the end of their path; else a line names them.
TEST_F(Source, FilesElsewhere) {
  shell("cd {} && mkdir -p other/place empty && mv src other/place/src", directory_.path());
  const std::string gone = show("--source ../reports", "empty");
  EXPECT_HAS(gone,
             "no function of own code has a source file here\nnote: sources not here: app.c "
             "(not at " +
                 directory_.path() + "/src/app.c); --source-path DIR says where\n");
  EXPECT_TRUE(gone.ends_with("status 0\n")) << gone;
  const std::string found = show("--source --source-path ../other/place ../reports", "empty");
  EXPECT_EQ(numbers(found, 6), "3000 3000") << found;
  EXPECT_HAS(found, "  ../other/place/src/app.c\n");
  // From the working directory, by a path that ends in the same directory.
  EXPECT_EQ(numbers(show("--source ../../reports", "other/place"), 6), "3000 3000");
}

// On another machine there is no program: its files are searched by name.
TEST_F(Source, WithoutTheProgram) {
  shell("rm {}/app", directory_.path());
  EXPECT_EQ(numbers(show("--source reports"), 6), "3000 3000");
  shell("mkdir {0}/two && cp {0}/src/app.c {0}/two", directory_.path());
  const std::string two = show("--source reports");
  EXPECT_HAS(two, "sources not here: app.c (2 files of this name, as ");
  EXPECT_EQ(numbers(show("--source ../reports", "two"), 6), "3000 3000");
}

TEST_F(Source, AnotherFileOfThatName) {
  write_file(directory_ / "src/app.c", "one line\n");
  const std::string text = show("--source reports");
  EXPECT_HAS(text, "src/app.c has 1 lines, not 6: it is not the file that was compiled\n");
}

TEST(SourcePaths, SplitsALine) {
  using symbols::split_source;
  EXPECT_EQ(split_source("a.c:12"), (std::pair<std::string, uint64_t>("a.c", 12)));
  EXPECT_EQ(split_source("a:b.c:7"), (std::pair<std::string, uint64_t>("a:b.c", 7)));
  EXPECT_EQ(split_source("a.c"), (std::pair<std::string, uint64_t>("a.c", 0)));
  EXPECT_EQ(split_source("a.c:x"), (std::pair<std::string, uint64_t>("a.c:x", 0)));
}

}  // namespace
}  // namespace mtrace::test
