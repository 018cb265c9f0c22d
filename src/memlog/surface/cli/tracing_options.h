// The options of memlog run and attach, and the library's settings that follow from them.
#pragma once

#include <sys/types.h>

#include "process/inspect/ledgers.h"
#include "process/run/asked_process.h"
#include "surface/cli/arguments.h"
#include "surface/cli/command.h"
#include "surface/fleet/http_client.h"
#include "util/prelude.h"
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

// The processes that a command names, and the one that it watches through its ledger.

// Reads processes from a command's operands.

// Returns the processes that the operands name, each once. Reports an operand without a process to
// the error stream and sets `good` to false. Throws UsageError when there are no operands.
std::vector<pid_t> named_processes(const Arguments& arguments, const Streams& streams, bool& good);

// The process that a command reads through its ledger. With --attach, memlog attaches to it first
// if it is not traced.

inline constexpr Option kAttachOption = {
    "--attach", "", "", "If the process is not traced, attach to it first, and detach at the end."};

class WatchedProcess {
 public:
  // Finds the process that the operand names. Says on the error stream when it has attached.
  // Throws std::runtime_error when no process or several match, it has no readable ledger, or
  // memlog cannot attach to it. The destructor detaches; until then signals that are to end memlog
  // are caught (process/ptrace/safe_point.h).
  WatchedProcess(const Arguments& arguments, const Streams& streams);

  pid_t pid() const { return target_->pid(); }
  const process::ProcessHandle& process() const { return target_->process(); }
  ledger::LedgerFile& ledger() const { return target_->ledger(); }

  // Detaches. The ledger stays readable.
  void let_go() { attachment_.reset(); }

 private:
  std::optional<process::Attachment> attachment_;
  std::optional<process::Target> target_;
};

}  // namespace mtrace::cli
