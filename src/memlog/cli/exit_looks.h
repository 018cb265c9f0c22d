// Looks for lost blocks in the processes of a run before their exit takes away what holds them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "profile/model.h"
#include "target/exit_holds.h"
#include "target/launch.h"

namespace mtrace::cli {

inline constexpr char kExitLookHelp[] =
    R"(Look for lost blocks when the program exits, before exit handlers and destructors run, as
    memlog unreachable does in a running process. The exit waits for it.)";

// What was found in one process.
struct ExitLook {
  std::string name;
  pid_t pid = 0;
  std::string trouble;   // why the process was not looked at, as in AttachError; empty: it was
  std::string unknown;   // HeapScan::unknown()
  size_t blocks = 0;     // looked at
  profile::Memlog lost;  // what is definitely lost, as a report without names
};

class ExitLooks {
 public:
  // `ledgers`: the directory of the ledgers; empty: nothing is looked at.
  explicit ExitLooks(const std::string& ledgers) : holds_(ledgers), active_(!ledgers.empty()) {}

  // For launch(): serves the processes that wait.
  target::Tick tick();
  std::vector<ExitLook>& found() { return found_; }

 private:
  void look(pid_t pid, live::LedgerFile& ledger);

  target::ExitHolds holds_;
  bool active_;
  std::vector<ExitLook> found_;
};

}  // namespace mtrace::cli
