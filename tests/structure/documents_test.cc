// What the documents name must be there, and their samples what memlog prints.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "directories.h"
#include "expect.h"
#include "files.h"
#include "process.h"

namespace mtrace::test {
namespace {

// What people read, by path; not the notebook, which is of its day.
const std::map<std::string, std::string>& documents() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> found;
    const auto add = [&](const std::filesystem::path& file) {
      found[file.string().substr(source_dir().size() + 1)] = read_file(file);
    };
    for (const char* name : {"README", "SECURITY", "CONTRIBUTING", "index.html"}) {
      add(source_dir() + '/' + name);
    }
    for (const auto& file : std::filesystem::recursive_directory_iterator(source_dir() + "/doc")) {
      const std::string path = file.path();
      if (path.ends_with(".md") && path.find("/notebook/") == std::string::npos) add(path);
    }
    return found;
  }();
  return all;
}

using Check = std::function<void(const Match& match)>;

// Checks every match in every document; there must be at least so many.
void each(const char* pattern, int least, const Check& check) {
  int found = 0;
  for (const auto& [path, text] : documents()) {
    SCOPED_TRACE(path);
    for (const Match& match : all_matches(text, pattern)) {
      ++found;
      check(match);
    }
  }
  EXPECT_GE(found, least) << pattern;
}

std::set<std::string> all_of(const std::string& text, const std::string& pattern) {
  const std::vector<std::string> found = matches(text, pattern);
  return {found.begin(), found.end()};
}

// The text of all files below a folder whose names end so.
std::string sources(const std::string& folder, const std::vector<std::string>& endings) {
  std::string text;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(source_dir() + '/' + folder)) {
    const std::string path = file.path();
    for (const std::string& ending : endings) {
      if (file.is_regular_file() && path.ends_with(ending)) text += read_file(path);
    }
  }
  return text;
}

// As a heading is named in a link: "The `MTRACE_MMAP` option" is the-mtrace_mmap-option.
std::set<std::string> anchors(const std::string& text) {
  std::set<std::string> found = all_of(text, "id=\"([^\"]+)\"");
  for (const std::string& title : all_of(text, "(?:^|\n)#+ ([^\n]+)")) {
    std::string anchor;
    for (const char c : title) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (c == ' ') {
        anchor += '-';
      }
    }
    found.insert(anchor);
  }
  return found;
}

TEST(DocumentsTest, LinksLeadSomewhere) {
  int links = 0;
  const std::string link = R"re((?:\]\(|(?:href|src|srcset|data)=")([^)"#]*)(?:#([^)"]+))?[)"])re";
  for (const auto& [path, text] : documents()) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (const Match& match : all_matches(text, link)) {
      if (match[1].find(':') != std::string::npos) continue;
      ++links;
      const std::string target =
          match[1].empty() ? path : (folder / match[1]).lexically_normal().string();
      EXPECT_TRUE(std::filesystem::exists(source_dir() + '/' + target)) << path << ": " << target;
      if (match[2].empty()) continue;
      EXPECT_TRUE(anchors(read_file(source_dir() + '/' + target)).contains(match[2]))
          << path << ": " << match[0];
    }
  }
  EXPECT_GE(links, 100);
}

TEST(DocumentsTest, NamesTestsThatExist) {
  const std::set<std::string> tests =
      all_of(replaced(sources("tests", {".cc"}), ",\\s+", "."), R"re(\bTEST\w*\((\w+\.\w+)\))re");
  each(R"re(`(?:\w+/)?([A-Z]\w+Test)\.(\w+|\*))re", 50, [&](const Match& match) {
    const std::string name = match[1] + '.' + (match[2] == "*" ? "" : match[2]);
    const auto at = tests.lower_bound(name);
    EXPECT_TRUE(at != tests.end() && (match[2] == "*" ? at->starts_with(name) : *at == name))
        << name;
  });
}

TEST(DocumentsTest, NamesCommandsAndOptionsThatExist) {
  const auto help = [](const std::string& command) {
    static std::map<std::string, std::string> known;
    std::string& text = known[command];
    if (text.empty()) {
      Command run_help;
      run_help.argv = {memlog_tool(), "help", command};
      text = expect_exit(run(run_help)).out;
    }
    return text;
  };
  each("(?:`|<code>|\\$ |\n    )memlog ([a-z]+)([^`\n|#<]*)", 300, [&](const Match& match) {
    const std::string page = help(match[1]);
    for (const std::string& option : all_of(match[2], " (--[a-z][-a-z]+)")) {
      EXPECT_HAS(page, option) << match[0];
    }
  });
}

TEST(DocumentsTest, NamesVariablesAndTargetsThatExist) {
  const std::string code = sources("src", {".h", ".cc", ".def"}) + sources("include", {".h"}) +
                           sources("tests", {".cc", ".mk", ".py", ".sh"}) +
                           sources("doc", {".cmake", ".yml", ".in"}) +
                           read_file(source_dir() + "/Makefile");
  std::set<std::string> names;
  for (size_t at = 0; (at = code.find_first_of("M", at)) != std::string::npos;) {
    const size_t end = code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", at);
    names.insert(code.substr(at, end - at));
    at = end;
  }
  each("\\b(M(?:TRACE|EMLOG)_[A-Z_]*[A-Z])\\b", 150,
       [&](const Match& match) { EXPECT_TRUE(names.contains(match[1])) << match[1]; });
  const std::set<std::string> words =
      all_of(read_file(source_dir() + "/Makefile") + read_file(source_dir() + "/package.mk") +
                 sources("tests", {".mk"}),
             "([a-z][-a-z0-9]+)[ :\n]");
  each("(?:`|<code>|\n    )make ([a-z][-a-z0-9]+)(?:[^-=/\\w\n]|(?m:$))", 20,
       [&](const Match& match) { EXPECT_TRUE(words.contains(match[1])) << match[0]; });
}

TEST(DocumentsTest, ChangelogsHaveTheSameDates) {
  const std::string changes = read_file(source_dir() + "/CHANGELOG");
  const std::string packaged = read_file(source_dir() + "/packaging/changelog");
  int releases = 0;
  for (const Match& match :
       all_matches(changes, R"re((?:^|\n)(\d[\d.]*) \((\d+)-(\d+)-(\d+)\)\n)re")) {
    ++releases;
    const size_t begin = packaged.find("mtrace (" + match[1] + ")");
    ASSERT_NE(begin, std::string::npos) << match[1];
    const size_t signature = packaged.find("\n -- ", begin);
    const std::string line =
        packaged.substr(signature, packaged.find('\n', signature + 1) - signature);
    static const char* const kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    EXPECT_HAS(line, match[4] + ' ' + kMonths[std::stoi(match[3]) - 1] + ' ' + match[2]);
  }
  EXPECT_GE(releases, 2);
}

TEST(DocumentsTest, SamplesAreWhatIsPrinted) {
  const TemporaryDirectory home;
  Command command;
  command.env = plain_environment(home.path());
  command.argv = {"/usr/bin/python3",
                  "-B",
                  source_dir() + "/doc/pictures/samples.py",
                  build_dir(),
                  "--check",
                  source_dir() + "/README",
                  source_dir() + "/index.html"};
  EXPECT_HAS(expect_exit(run(command)).out, "index.html: 5 samples");
}

}  // namespace
}  // namespace mtrace::test
