// memlog check --format: what services for continuous integration read, each parsed by a parser
// that is not memlog's own, for a program whose leaks are known.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tool_test.h"

namespace mtrace::test {
namespace {

using nlohmann::json;

// The lines of the two leaks are 6 and 9.
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
    build(kSource);
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }
  static void build(const std::string& source) {
    write_file(*directory_ / "src/leak.cc", source);
    shell("cd {} && {} -g -O0 -o app src/leak.cc", directory_->path(), compiler());
  }
  // What the command prints, after the exit status on a line of its own.
  static std::string check(const std::string& words, const std::string& environment = "") {
    return shell(
        "exec 2>&1 </dev/null; cd {}; unset GITHUB_WORKSPACE CI_PROJECT_DIR; "
        "env {} {}/memlog check {}; echo \"status $?\"",
        directory_->path(), Script{environment}, build_dir(), Script{words});
  }
  static std::string file(const std::string& name) { return read_file(*directory_ / name); }

  static TemporaryDirectory* directory_;
};

TemporaryDirectory* CheckFormats::directory_ = nullptr;

struct Annotation {
  std::string properties;
  std::string message;
};

std::vector<Annotation> annotations(const std::string& text) {
  std::vector<Annotation> found;
  const std::regex command("::error ([^\n]*?)::([^\n]*)\n");
  for (std::sregex_iterator at(text.begin(), text.end(), command), end; at != end; ++at) {
    found.push_back({(*at)[1], (*at)[2]});
  }
  return found;
}

// GitHub shows an annotation beside the line that it names, from the root of the repository.
TEST_F(CheckFormats, GithubNamesTheLines) {
  const std::string text = check("--format github -- ./app");
  EXPECT_TRUE(text.starts_with("FAILED: live: ")) << text;
  EXPECT_TRUE(text.ends_with("status 1\n")) << text;
  const std::vector<Annotation> found = annotations(text);
  ASSERT_EQ(found.size(), 3u) << text;  // the verdict, open_log, open_session
  EXPECT_EQ(found[0].properties, "title=memlog check");
  EXPECT_EQ(found[0].message, "live: 4,128 bytes in 2 stacks, 0 bytes allowed");
  EXPECT_EQ(found[1].properties,
            "file=src/leak.cc,line=9,title=open_log()%3A 4%2C000 bytes in 1 block live");
  EXPECT_TRUE(found[1].message.starts_with("open_log()  leak.cc:9%0Amain  leak.cc:14%0A"))
      << found[1].message;
  // The first frame is operator new.
  EXPECT_EQ(found[2].properties,
            "file=src/leak.cc,line=6,title=open_session()%3A 128 bytes in 1 block live");
  EXPECT_EQ(annotations(check("-f github -n 1 -- ./app")).size(), 2u);
}

TEST_F(CheckFormats, TheRootIsTheServices) {
  const std::string above = directory_->path().substr(0, directory_->path().rfind('/'));
  const std::string name = directory_->path().substr(above.size() + 1);
  const std::string text = check("--format github -- ./app", "GITHUB_WORKSPACE=" + above);
  EXPECT_NE(text.find("::error file=" + name + "/src/leak.cc,line=9,"), std::string::npos) << text;
}

TEST_F(CheckFormats, GoodIsGood) {
  const std::string text = check("--format github --max-live 1M -- ./app");
  EXPECT_TRUE(text.starts_with("ok: live: 4128 bytes in 2 stacks")) << text;
  EXPECT_TRUE(annotations(text).empty()) << text;
  EXPECT_TRUE(text.ends_with("status 0\n")) << text;
  EXPECT_TRUE(check("-f gitlab -o q.json --max-live 1M -- ./app").ends_with("status 0\n"));
  EXPECT_EQ(json::parse(file("q.json")), json::array());
}

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
  for (const char* format : {"junit", "gitlab", "json"}) {
    check(std::string("-f ") + format + " -o verdict --max-live 1M -- ./app");
    EXPECT_NE(file("verdict"), "");
    check(std::string("-f ") + format + " -o verdict -- /bin/false");
    EXPECT_FALSE(std::filesystem::exists(*directory_ / "verdict")) << format;
  }
}

struct Issue {
  std::set<std::string> fingerprints;
  std::set<std::string> places;
};

Issue issues(const std::string& text) {
  Issue all;
  for (const json& one : json::parse(text)) {
    EXPECT_EQ(one["severity"], "major");
    EXPECT_EQ(one["check_name"], "memlog-live");
    all.fingerprints.insert(one["fingerprint"]);
    all.places.insert(one["location"]["path"].get<std::string>() + ":" +
                      std::to_string(one["location"]["lines"]["begin"].get<int>()));
  }
  return all;
}

// GitLab compares the issues of two branches by their fingerprints: lines move, leaks stay.
TEST_F(CheckFormats, GitlabKnowsALeakAgain) {
  EXPECT_TRUE(check("--format gitlab --output q.json -- ./app").ends_with("status 1\n"));
  const Issue before = issues(file("q.json"));
  EXPECT_EQ(before.fingerprints.size(), 2u);
  EXPECT_EQ(before.places, (std::set<std::string>{"src/leak.cc:6", "src/leak.cc:9"}));
  build(std::string("// A line.\n// Another.\n") + kSource);
  check("--format gitlab --output q.json -- ./app");
  const Issue after = issues(file("q.json"));
  EXPECT_EQ(after.fingerprints, before.fingerprints);
  EXPECT_EQ(after.places, (std::set<std::string>{"src/leak.cc:8", "src/leak.cc:11"}));
  build(kSource);
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

// Names that would end an attribute, a command or a line.
TEST_F(CheckFormats, NamesForgeNothing) {
  write_file(*directory_ / "odd.memlog",
             small_memlog({"f<\"'&>::error%\t<a>,b:\\x0a.c:3\t(/m+0x1)"}));
  const std::string github = check("-f github --max-live 0 odd.memlog");
  ASSERT_EQ(annotations(github).size(), 2u) << github;
  EXPECT_NE(annotations(github)[1].properties.find("file=<a>%2Cb%3A%0A.c,line=3,"),
            std::string::npos)
      << github;
  EXPECT_EQ(check("-f junit --max-live 0 -o odd.xml odd.memlog").find("memlog:"),
            std::string::npos);
  EXPECT_NE(junit(*directory_ / "odd.xml").find("f<\"'&>::error%: 64 bytes in 1 block live\n"),
            std::string::npos)
      << junit(*directory_ / "odd.xml");
  check("-f gitlab --max-live 0 -o odd.json odd.memlog");
  EXPECT_EQ(json::parse(file("odd.json"))[0]["location"]["path"], "<a>,b:\n.c");
}

}  // namespace
}  // namespace mtrace::test
