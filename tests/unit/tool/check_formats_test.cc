// memlog check --format: what services for continuous integration read, each parsed by a parser
// that is not memlog's own, for a program whose leaks are known.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tool_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

constexpr char kSource[] = R"(#include <cstdlib>
#include <cstdio>

static void* volatile kept;
__attribute__((noinline)) void open_session() {
  kept = new long[16];
}
__attribute__((noinline)) void open_log() {
  kept = std::malloc(4000);
  std::getenv("a,b:c%");
}
int main() {
  open_session();
  open_log();
}
)";

class CheckFormats : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    ::mkdir((*directory_ / "src").c_str(), 0755);
    write_file(*directory_ / "src/leak.cc", kSource);
    shell("cd {} && {} -g -O0 -o app src/leak.cc", directory_->path(), compiler());
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }
  // What the command prints, after the exit status on a line of its own.
  static std::string check(const std::string& words) {
    return shell("exec 2>&1 </dev/null; cd {}; {}/memlog check {}; echo \"status $?\"",
                 directory_->path(), build_dir(), Script{words});
  }
  static std::string file(const std::string& name) { return read_file(*directory_ / name); }

  static TemporaryDirectory* directory_;
};

TemporaryDirectory* CheckFormats::directory_ = nullptr;

constexpr char kReadJunit[] =
    "import sys, xml.etree.ElementTree as t\n"
    "for suite in t.parse(sys.argv[1]).getroot():\n"
    "    print(suite.tag, suite.get('tests'), suite.get('failures'))\n"
    "    for case in suite:\n"
    "        print(case.tag, case.get('classname'), case.get('name'))\n"
    "        for one in case:\n"
    "            print(one.tag, one.get('message'))\n"
    "            print(one.text.splitlines()[0].split('  ')[0])\n";

std::string junit(const std::string& path) { return shell("python3 -c {} {}", kReadJunit, path); }

TEST_F(CheckFormats, JunitIsATestThatFails) {
  const std::string text = check("--format junit --output memory.xml -- ./app");
  EXPECT_TRUE(text.starts_with("FAILED: live: ")) << text;
  EXPECT_TRUE(text.ends_with("status 1\n")) << text;
  EXPECT_EQ(junit(*directory_ / "memory.xml"),
            "testsuite 1 1\n"
            "testcase memlog.check live\n"
            "failure live: 4,128 bytes in 2 stacks, 0 bytes allowed\n"
            "open_log(): 4,000 bytes in 1 block live\n");
  check("-f junit -o memory.xml --max-live 1M -- ./app");
  EXPECT_EQ(junit(*directory_ / "memory.xml"), "testsuite 1 0\ntestcase memlog.check live\n");
}

// The verdict of another run is none: the program ends with an error, so that nothing is judged.
TEST_F(CheckFormats, NoVerdictIsLeftWhereNothingIsJudged) {
  for (const char* format : {"junit", "json"}) {
    check(std::string("-f ") + format + " -o verdict --max-live 1M -- ./app");
    EXPECT_NE(file("verdict"), "");
    check(std::string("-f ") + format + " -o verdict -- /bin/false");
    EXPECT_FALSE(std::filesystem::exists(*directory_ / "verdict")) << format;
  }
}

TEST_F(CheckFormats, JsonOfAProgramGoesToItsFile) {
  EXPECT_TRUE(check("--json --output c.json -- ./app").ends_with("status 1\n"));
  EXPECT_EQ(json::parse(file("c.json"))["checks"][0]["bytes"], 4128);
  for (const char* words : {"--json -- ./app", "-f junit -- ./app", "-o x -- ./app",
                            "--json -f json -o x -- ./app", "-f xml -- ./app"}) {
    const std::string text = check(words);
    EXPECT_TRUE(text.starts_with("memlog: check: ")) << text;
    EXPECT_TRUE(text.ends_with("status 2\n")) << text;
  }
}

// Names that would end an attribute or a line.
TEST_F(CheckFormats, NamesForgeNothing) {
  write_file(*directory_ / "odd.memlog",
             small_memlog({"f<\"'&>::error%\t<a>,b:\\x0a.c:3\t(/m+0x1)"}));
  EXPECT_LACKS(check("-f junit --max-live 0 -o odd.xml odd.memlog"), "memlog:");
  EXPECT_HAS(junit(*directory_ / "odd.xml"), "f<\"'&>::error%: 64 bytes in 1 block live\n");
}

}  // namespace
}  // namespace mtrace::test
