// Options that need others and options that exclude others, of every command's table.
#include <gtest/gtest.h>

#include <algorithm>

#include "surface/cli/command.h"
#include "tool_test.h"

namespace mtrace::test {
namespace {

using cli::Option;

// The words that give an option, "--by=live" with that value.
std::vector<std::string> words_of(const cli::Manual& manual, const std::string& term) {
  if (const Option* const option = cli::find_option(manual, term)) {
    if (*option->value == '\0') return {term};
    return {term, *option->choices == '\0' ? "1" : cli::choices_of(option->choices).front()};
  }
  const std::string name = term.substr(0, term.find('='));
  if (cli::find_option(manual, name) == nullptr) return {};
  return {name, term.substr(name.size() + 1)};
}

class OptionsTest : public testing::Test {
 protected:
  // Calls `action` with each option of a command, and each of the terms that `column` has for it.
  template <typename Action>
  static void each(const char* Option::*column, Action action) {
    for (const cli::Command* command : cli::all_commands()) {
      for (const Option& option : command->manual.options) {
        for (const std::string& term : cli::choices_of(option.*column)) {
          if (!words_of(command->manual, term).empty()) action(command->manual, option, term);
        }
      }
    }
  }
  // What the option itself needs.
  static std::vector<std::string> with_needs(const cli::Manual& manual, const Option& option) {
    std::vector<std::string> words = words_of(manual, option.name);
    for (const std::string& term : cli::choices_of(option.needs)) {
      const std::vector<std::string> more = words_of(manual, term);
      if (more.empty()) continue;
      words.insert(words.end(), more.begin(), more.end());
      if (const Option* const needed = cli::find_option(manual, term)) {
        for (const std::string& other : with_needs(manual, *needed)) words.push_back(other);
      }
      break;
    }
    return words;
  }
  static void expect_refused(std::vector<std::string> words, const std::string& message) {
    const Outcome result = memlog(words);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_EQ(result.err, "memlog: " + words[0] + ": " + message + "\n");
  }
};

TEST_F(OptionsTest, WhatAnOptionNeedsIsAskedFor) {
  size_t count = 0;
  each(&Option::needs, [&](const cli::Manual& manual, const Option& option, const std::string&) {
    std::vector<std::string> words = words_of(manual, option.name);
    words.insert(words.begin(), manual.name);
    const Outcome result = memlog(words);
    EXPECT_EQ(result.status, 2) << manual.name << option.name;
    EXPECT_TRUE(result.err.starts_with(std::string("memlog: ") + manual.name + ": " + option.name +
                                       " needs --"))
        << result.err;
    ++count;
  });
  EXPECT_GT(count, 20u);
}

TEST_F(OptionsTest, WhatAnOptionExcludesIsRefused) {
  size_t count = 0;
  each(&Option::excludes,
       [&](const cli::Manual& manual, const Option& option, const std::string& term) {
         std::vector<std::string> words = with_needs(manual, option);
         words.insert(words.begin(), manual.name);
         const Option* const other = cli::find_option(manual, term);
         const std::vector<std::string> more =
             other != nullptr ? with_needs(manual, *other) : words_of(manual, term);
         words.insert(words.end(), more.begin(), more.end());
         expect_refused(words, std::string(option.name) + " cannot be used with " + term);
         ++count;
       });
  EXPECT_GT(count, 20u);
}

}  // namespace
}  // namespace mtrace::test
