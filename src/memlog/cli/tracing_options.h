// What memlog run and attach can be told, and what the library is told of it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace mtrace::cli {

struct RunOptions {
  std::vector<std::string> settings;  // "MTRACE_DEPTH=20"
  std::string directory;              // where reports are looked for
  std::chrono::milliseconds every{0};
  bool quiet = false;
};

Manual run_manual();
// Those of run's options that are named, with others behind them.
std::vector<Option> with_run_options(const std::vector<std::string>& names,
                                     std::vector<Option> others);

// The options with which a program can be traced. Makes the directory of --output if there is none.
// Throws UsageError.
RunOptions read_run_options(const Arguments& arguments);

// The directory `path` as an absolute one. Throws UsageError: it is none.
std::string ledger_place(const std::string& path);

}  // namespace mtrace::cli
