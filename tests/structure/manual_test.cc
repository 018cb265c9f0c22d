// The manual pages: that they render without a warning, and leave nothing out.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "expect.h"
#include "process.h"

namespace mtrace::test {
namespace {

const char* const kPages[] = {"memlog.1", "libmtrace.7", "memlog.5", "mtrace_report.3"};

std::string page_file(const std::string& page) { return build_dir() + "/share/man/" + page; }

Result run_words(const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& more = {}) {
  const TemporaryDirectory home;
  Command command;
  command.argv = {"/usr/bin/env"};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  command.env = plain_environment(home.path());
  command.env["LC_ALL"] = "C.UTF-8";
  for (const auto& [name, value] : more) command.env[name] = value;
  return run(command);
}

// As a terminal of 80 columns shows it; no word is cut at the end of a line.
std::string shown(const std::string& page) {
  const Result result =
      expect_exit(run_words({"man", "-l", "--warnings", "--no-hyphenation", page_file(page)},
                            {{"MANWIDTH", "80"}, {"MAN_KEEP_FORMATTING", ""}}));
  EXPECT_EQ(result.err, "") << page;
  return result.out;
}

// All runs of white space as one blank.
std::string flat(const std::string& text) { return replaced(text, "\\s+", " "); }

std::string help_of(const std::string& command) {
  return run_words({memlog_tool(), "help", command}).out;
}

TEST(ManualTest, RendersWithoutAWarning) {
  for (const char* page : kPages) {
    const Result result = expect_exit(run_words({"groff", "-man", "-ww", "-z", page_file(page)}));
    EXPECT_EQ(result.out + result.err, "") << page;
    const std::string left = shown(page);
    EXPECT_FALSE(has_match(left, "@[A-Z]+@")) << page;
  }
}

TEST(ManualTest, FitsEightyColumns) {
  for (const char* page : kPages) {
    for (const std::string& line : lines_of(shown(page))) {
      size_t columns = 0;
      for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      EXPECT_LE(columns, 80u) << page << ": " << line;
    }
  }
}

TEST(ManualTest, SaysHowItDiffersFromGlibc) {
  for (const char* page : kPages) {
    const std::string text = flat(shown(page));
    EXPECT_HAS(text, "glibc") << page;
    EXPECT_HAS(text, "mtrace(3)") << page;
  }
}

// The section of a command: up to the next heading, three columns in.
std::string section_of(const std::string& page, const std::string& command) {
  const size_t begin = page.find("\n   memlog " + command + "\n");
  if (begin == std::string::npos) return {};
  const std::string rest = page.substr(begin + 1);
  const Match next = first_match(rest, "\n {3}[A-Za-z]");
  return next.empty() ? rest : rest.substr(0, rest.find(next[0]));
}

TEST(ManualTest, DescribesEveryCommandAndOption) {
  const std::string page = shown("memlog.1");
  const std::vector<std::string> commands =
      matches(run_words({memlog_tool()}).out, "\n  ([a-z]+)  +[a-zA-Z]");
  EXPECT_GE(commands.size(), 12u);
  int options = 0;
  for (const std::string& command : commands) {
    const std::string section = section_of(page, command);
    EXPECT_NE(section, "") << command;
    for (const std::string& option :
         matches(help_of(command), "(?m)^  (?:-[a-z], )?(--[a-z-]+)(?: \\S+)?$")) {
      ++options;
      EXPECT_HAS(section, option) << command << option;
      EXPECT_TRUE(has_match(page, "\n {7}(-[a-z], )?" + option + "[ \n]")) << option;
    }
  }
  EXPECT_GE(options, 80);
}

TEST(ManualTest, DescribesEveryOptionOfTheLibrary) {
  const std::string page = shown("libmtrace.7");
  const std::string table = read_file(source_dir() + "/src/format/options.def");
  int options = 0;
  for (const Match& match :
       all_matches(table, R"re(MTRACE_OPTION\(\w+, "(\w+)", \w+, "([^"]*)")re")) {
    ++options;
    const size_t begin = page.find("\n       " + match[1] + "=", page.find("\nOPTIONS\n"));
    ASSERT_NE(begin, std::string::npos) << match[1];
    const std::string entry = page.substr(begin + 1, page.find('\n', begin + 1) - begin - 1);
    const std::string otherwise = match[2].empty() ? "unset" : match[2];
    EXPECT_TRUE(entry.ends_with("(default: " + otherwise + ")")) << entry;
  }
  EXPECT_GE(options, 19);
}

TEST(ManualTest, HasEveryFunctionOfTheHeader) {
  const std::string header = read_file(source_dir() + "/include/mtrace.h");
  const std::string page = shown("mtrace_report.3");
  const std::string text = replaced(flat(page), "\\* ", "*");
  int functions = 0;
  // "int mtrace_note(const char* format, ...)" as the page writes it: "char *format".
  const std::string declared = header.substr(0, header.find("How the library is found"));
  for (const std::string& prototype :
       matches(declared, "\nMTRACE_INTERNAL_(?:FUNCTION|INLINE) ([^;{]*\\))[^;{)]*;")) {
    ++functions;
    const std::string line = replaced(flat(prototype), "\\* ", " *");
    EXPECT_HAS(text, line + ";") << line;
    // In the text, in what it returns, in what is safe: besides name and synopsis.
    const std::string name = matches(line, "(mtrace_[a-z_]+)\\(")[0];
    EXPECT_GE(matches(text, "\\b(" + name + ")\\(\\)").size(), 1u) << name;
  }
  EXPECT_GE(functions, 25);
}

TEST(ManualTest, SaysWhichFunctionsAreSafeInSignalHandlers) {
  const std::string text = flat(shown("mtrace_report.3"));
  const size_t begin = text.find("These are safe in signal handlers");
  ASSERT_NE(begin, std::string::npos);
  const std::string part = text.substr(begin, text.find("Savepoints are not", begin) - begin);
  const std::string document = read_file(source_dir() + "/doc/api.md");
  const std::string row = matches(document, "\\| in signal handlers[^|]*\\| ([^|]*) \\|").at(0);
  for (const std::string& name : matches(row, "(?:^|, )([a-z_]+)")) {
    EXPECT_HAS(part, "mtrace_" + name + "()") << name;
  }
}

TEST(ManualTest, NamesEveryKeyOfTheFormat) {
  const std::string text = flat(shown("memlog.5"));
  const std::string document = read_file(source_dir() + "/doc/memlog-format.md");
  int keys = 0;
  for (const std::string& cell : matches(document, "\n\\| (`[^|]*`) \\|")) {
    for (const std::string& key : matches(cell, "`([a-z-]+)`")) {
      ++keys;
      EXPECT_TRUE(has_match(text, " " + key + "(,| )")) << key;
    }
  }
  EXPECT_GE(keys, 50);
}

}  // namespace
}  // namespace mtrace::test
