// What the scripts for the three shells have in common: which words go where.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"

namespace mtrace::cli {

enum class Words {
  kNone,
  kMemlogs,
  kFiles,
  kDirectories,
  kProgram,
  kProcesses,
  kTopics,
};

// What follows the options of a command.
Words operands_of(const std::string& command);
// What the value of an option is, where it is none of its choices.
Words values_of(const Option& option);
bool takes_value(const Option& option);
// Those of a command, with --help.
std::vector<Option> options_of(const Manual& manual);
// The first sentence or half of one, short enough for a list.
std::string gist(const std::string& help);
// For bash and zsh.
std::string quoted(const std::string& text);
// The choices of an option, parted by blanks.
std::string spaced(const Option& option);
// The names of all commands, parted by blanks.
std::string command_names();

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace mtrace::cli
