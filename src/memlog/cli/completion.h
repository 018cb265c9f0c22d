// Shell completion, generated from the tables of commands and options.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"

namespace mtrace::cli {

// Returns the script for "bash", "zsh" or "fish".
std::string completion(const std::string& shell);

// Shared by the scripts of the three shells: which words to complete where.

enum class Words {
  kNone,
  kMemlogs,
  kFiles,
  kDirectories,
  kProgram,
  kProcesses,
  kProcessesOrMemlogs,
  kTopics,
};

// Returns what a command's operands are.
Words operands_of(const std::string& command);
// Returns what an option's value is, if the option has no choices.
Words values_of(const Option& option);
bool takes_value(const Option& option);
// Returns a command's options and --help.
std::vector<Option> options_of(const Manual& manual);
// Returns the first sentence, or half of it, short enough for a list.
std::string gist(const std::string& help);
// Quotes a text for bash and zsh.
std::string shell_quoted(const std::string& text);
// Returns an option's choices, separated by blanks.
std::string spaced(const Option& option);
// Returns the names of all commands, separated by blanks.
std::string command_names();

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace mtrace::cli
