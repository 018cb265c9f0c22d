// What memlog prints: the files of tests/transcripts, which read as a terminal does.
//
//   ## a remark, before the command that it is about
//   $ memlog show app-4711-2.memlog     a command of a shell; "terminal$": memlog as if to one
//   > ...                               more lines of the command
//   +70000 bytes ...                    what it prints. [..] stands for any part of a line, and a
//   ...                                 line of three periods for any lines
//   2> memlog: ...                      on standard error, after all else
//   [exit 2] memlog: ...                its status, unless that is 0, before the first such line
//
// Each file has a directory with copies of the reports in tests/golden. memlog alone runs in this
// process; a shell knows the project's directory, that of the build, and the compiler: $SOURCE,
// $BUILD, $CXX. MEMLOG_UPDATE_GOLDEN=1 writes anew what is not as expected: then read the
// difference.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "format/memlog.h"
#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "process.h"
#include "tool_test.h"
#include "util/text.h"

namespace mtrace::test {
namespace {

constexpr std::string_view kPrompts[] = {"$ ", "terminal$ "};

struct Step {
  std::string before;  // remarks
  std::string prompt;
  std::string command;
  std::vector<std::string> expected;
};

std::vector<Step> steps_of(const std::string& file) {
  std::vector<Step> steps;
  std::string remarks;
  for (const std::string& line : lines_of(read_file(file))) {
    const auto* const prompt = std::find_if(std::begin(kPrompts), std::end(kPrompts),
                                            [&](auto one) { return line.starts_with(one); });
    if (prompt != std::end(kPrompts)) {
      steps.push_back({remarks, std::string(*prompt), line.substr(prompt->size()), {}});
      remarks.clear();
    } else if (line.starts_with("> ") && steps.at(steps.size() - 1).expected.empty()) {
      steps.back().command += '\n' + line.substr(2);
    } else if (line.starts_with("## ")) {
      remarks += line + '\n';
    } else {
      steps.at(steps.size() - 1).expected.push_back(line);
    }
  }
  return steps;
}

// The words of a command of memlog alone; none: a shell is to run it.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (!quoted && c == ' ') {
      words.emplace_back();
    } else if (!quoted && std::string_view("|<>;&$`\"\n").find(c) != std::string_view::npos) {
      return {};
    } else {
      words.back() += c;
    }
  }
  // What runs a program does not do so from here.
  const bool runs = words.size() > 1 && words[1] == "run";
  if (words[0] != "memlog" || runs || std::count(words.begin(), words.end(), "--") != 0) return {};
  words.erase(words.begin());
  return words;
}

Outcome outcome_of(const Step& step) {
  const std::vector<std::string> words = words_of(step.command);
  if (!words.empty() || step.command == "memlog") return memlog(words, step.prompt != kPrompts[0]);
  Command command = shell_command(step.command);
  command.env["PATH"] = build_dir() + ':' + command.env["PATH"];
  command.env["SOURCE"] = source_dir();
  command.env["BUILD"] = build_dir();
  command.env["CXX"] = compiler();
  const Result result = run(command);
  return {WIFEXITED(result.status) ? WEXITSTATUS(result.status) : 128 + WTERMSIG(result.status),
          result.out, result.err};
}

std::vector<std::string> printed(const Outcome& outcome) {
  std::vector<std::string> lines = lines_of(outcome.out);
  if (!outcome.out.empty() && !outcome.out.ends_with('\n')) lines.back() += "[no newline]";
  for (const std::string& line : lines_of(outcome.err)) lines.push_back("2> " + line);
  if (outcome.status == 0) return lines;
  if (outcome.err.empty()) lines.emplace_back("2>");
  const size_t first = lines.size() - std::max<size_t>(lines_of(outcome.err).size(), 1);
  lines[first].replace(0, 2, fmt::format("[exit {}]", outcome.status));
  return lines;
}

bool line_matches(std::string_view line, std::string_view pattern) {
  constexpr std::string_view kAny = "[..]";
  const size_t any = pattern.find(kAny);
  if (any == pattern.npos) return line == pattern;
  if (!line.starts_with(pattern.substr(0, any))) return false;
  for (size_t at = any; at <= line.size(); ++at) {
    if (line_matches(line.substr(at), pattern.substr(any + kAny.size()))) return true;
  }
  return false;
}

using Lines = std::span<const std::string>;

bool lines_match(Lines lines, Lines patterns) {
  if (patterns.empty()) return lines.empty();
  if (patterns[0] == "...") {
    for (size_t at = 0; at <= lines.size(); ++at) {
      if (lines_match(lines.subspan(at), patterns.subspan(1))) return true;
    }
    return false;
  }
  return !lines.empty() && line_matches(lines[0], patterns[0]) &&
         lines_match(lines.subspan(1), patterns.subspan(1));
}

std::string transcripts() { return source_dir() + "/tests/transcripts/"; }

// In a directory with copies of the reports. What is held against a fixed text must not depend on
// who runs the test.
class InDirectory {
 public:
  InDirectory() : before_(std::filesystem::current_path()) {
    ::unsetenv("MTRACE_OUTPUT");
    ::unsetenv("NO_COLOR");
    std::filesystem::copy(source_dir() + "/tests/golden", directory_.path(),
                          std::filesystem::copy_options::recursive);
    std::filesystem::current_path(directory_.path());
  }
  ~InDirectory() { std::filesystem::current_path(before_); }
  InDirectory(const InDirectory&) = delete;
  InDirectory& operator=(const InDirectory&) = delete;
  const std::string& path() const { return directory_.path(); }

 private:
  std::filesystem::path before_;
  TemporaryDirectory directory_;
};

class Transcript : public testing::TestWithParam<std::string> {};

TEST_P(Transcript, IsAsExpected) {
  const InDirectory directory;
  const std::string file = transcripts() + GetParam() + ".txt";
  std::string text;
  bool changed = false;
  for (const Step& step : steps_of(file)) {
    const std::vector<std::string> lines = printed(outcome_of(step));
    const bool good = lines_match(lines, step.expected);
    changed |= !good;
    EXPECT_TRUE(good) << step.prompt << step.command << "\nprints\n"
                      << fmt::format("{}", fmt::join(lines, "\n")) << "\nin place of\n"
                      << fmt::format("{}", fmt::join(step.expected, "\n"));
    text += step.before + step.prompt + replaced(step.command, "\n", "\n> ");
    text += '\n';
    for (const std::string& line : good ? step.expected : lines) text += line + '\n';
  }
  if (changed && std::getenv("MEMLOG_UPDATE_GOLDEN") != nullptr) write_file(file, text);
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator(transcripts())) {
    found.push_back(file.path().stem());
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(Of, Transcript, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

TEST(Transcripts, WhatIsExpectedMayHavePlaceholders) {
  const std::vector<std::string> lines = {"pid 4711 (app)", "a", "b", "end"};
  const auto matches = [&](const std::vector<std::string>& patterns) {
    return lines_match(lines, patterns);
  };
  EXPECT_TRUE(matches({"pid [..] (app)", "...", "end"}));
  EXPECT_TRUE(matches({"pid 4711 (app)", "a", "b", "...", "end", "..."}));
  EXPECT_FALSE(matches({"pid [..] (apps)", "...", "end"}));
  EXPECT_FALSE(matches({"pid 4711 (app)", "...", "c", "end"}));
  EXPECT_FALSE(matches({"pid 4711 (app)", "a", "b"}));
}

TEST(Golden, EachInputIsReadAndWrittenUnchanged) {
  const InDirectory directory;
  size_t count = 0;
  for (const auto& item : std::filesystem::directory_iterator(".")) {
    const std::string name = item.path().filename();
    if (!name.ends_with(".memlog") || name == "damaged.memlog") continue;
    std::string text = read_file(name);
    text.replace(0, text.find('\n'), format::kMagicLine);  // two are of version 1
    EXPECT_EQ(profile::write(profile::read_path(name)), text) << name;
    ++count;
  }
  EXPECT_EQ(count, 19u);
}

TEST(Golden, NoColourWhereNobodyWantsIt) {
  const InDirectory directory;
  const auto has_colour = [](const std::string& color) {
    return memlog({"show", "--color", color, "app-4711-1.memlog"}, true).out.find('\033') !=
           std::string::npos;
  };
  EXPECT_TRUE(has_colour("auto"));
  for (const auto& [name, value] : {std::pair{"TERM", "dumb"}, std::pair{"NO_COLOR", "1"}}) {
    ::setenv(name, value, 1);
    EXPECT_FALSE(has_colour("auto")) << name;
    EXPECT_TRUE(has_colour("always")) << name;
    ::unsetenv(name);
  }
}

}  // namespace
}  // namespace mtrace::test
