// The options of memlog run and attach, and the library's settings that follow from them.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "surface/cli/arguments.h"
#include "surface/fleet/http_client.h"
#include "view/analyze/responsible.h"
#include "view/text/run_summary.h"

namespace mtrace::cli {

struct RunOptions {
  std::vector<std::string> settings;  // "MTRACE_DEPTH=20"
  std::string directory;              // where to look for reports
  std::chrono::milliseconds every{0};
  std::chrono::milliseconds timeline{0};  // interval of samples; 0: none
  size_t keep = 0;                        // reports of each process that are not merged; 0: all
  bool quiet = false;
  bool bytes = false;                       // exact numbers in the summary
  std::vector<const text::Runtime*> seen;   // whose variable is set
  bool compress_large = false;              // reports of more than 1 MiB
  bool unreachable = false;                 // look for lost blocks at exit
  fleet::HttpServerAddress receiver;        // of the event logs (--to); without origin: none
  std::string token_file;                   // for it
  analyze::ResponsiblePointer responsible;  // of the summary
};

Manual run_manual();
// Returns those of run's options that `names` lists, followed by `others`.
std::vector<Option> with_run_options(const std::vector<std::string>& names,
                                     std::vector<Option> others);

// Reads the options for tracing a program. Creates the directory of --output if it does not exist.
// Throws UsageError.
RunOptions read_run_options(const Arguments& arguments);

// Returns a complaint for each variable of memlog's environment that looks like an option of the
// library and is none. A program that is started with the library says so itself.
std::vector<std::string> unknown_variables();

// Returns the directory `path` of --ledger as an absolute path. Creates it if it does not exist.
// Throws UsageError when it cannot be used.
std::string ledger_place(const std::string& command, const std::string& path);

}  // namespace mtrace::cli
