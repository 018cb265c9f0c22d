// Shell commands that hold in every directory, also in one with a space in its path.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

#include "process.h"

namespace mtrace::test {

// Part of a command that stands as it is: options, redirections, commands.
struct Script {
  std::string text;
};

// Returns `text` as one word of a shell, whatever characters it has.
std::string shell_quoted(std::string_view text);

inline std::string shell_word(std::string_view text) { return shell_quoted(text); }
inline std::string shell_word(const Script& script) { return script.text; }
std::string shell_word(std::integral auto number) { return std::to_string(number); }

// A shell command with the environment of the test.
Command shell_command(const std::string& text);
// Runs one. Returns its standard output. The test fails, and shows standard error, unless the
// command ends with status 0.
std::string run_shell(const std::string& command);

// The same with arguments for each {} of the command: each text is quoted. Without arguments the
// command stands as it is.
template <typename... Arguments>
std::string shell(const std::string& command, const Arguments&... arguments) {
  if constexpr (sizeof...(arguments) == 0) {
    return run_shell(command);
  } else {
    return run_shell(fmt::format(fmt::runtime(command), shell_word(arguments)...));
  }
}

}  // namespace mtrace::test
