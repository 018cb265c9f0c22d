// What a command of memlog is, and where it writes.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace mtrace::cli {

inline constexpr int kGood = 0;
inline constexpr int kFailed = 1;    // what was asked for is not so, or did not work
inline constexpr int kUnusable = 2;  // a mistake in the command line, or a damaged file

struct Streams {
  FILE* out;
  FILE* err;
  bool terminal;       // `out` is one
  size_t columns = 0;  // that it has; 0: not known
};

struct Command {
  Manual manual;
  int (*run)(const Arguments& arguments, const Streams& streams);
};

const Command& run_command();
const Command& attach_command();
const Command& detach_command();
const Command& report_command();
const Command& status_command();
const Command& top_command();
const Command& expire_command();
const Command& recover_command();
const Command& resolve_command();
const Command& show_command();
const Command& tree_command();
const Command& diff_command();
const Command& leaks_command();
const Command& check_command();
const Command& export_command();
const Command& decode_command();
const Command& help_command();

// All of them, in the order in which help lists them.
std::vector<const Command*> all_commands();

// Runs the program with `words`, its arguments without its name. Returns the exit status.
int run(const std::vector<std::string>& words, const Streams& streams);

// "memlog: text\n" to the stream for errors.
void complain(const Streams& streams, const std::string& text);
void print(const Streams& streams, const std::string& text);

}  // namespace mtrace::cli
