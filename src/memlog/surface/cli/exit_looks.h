// Looks for lost blocks in the processes of a run: before their exit takes away what holds them,
// after it if that is wanted, and when they ask for a leak check.
#pragma once

#include "model/profile/model.h"
#include "process/inspect/ledgers.h"
#include "process/ptrace/heap_scan.h"
#include "process/run/launch.h"
#include "surface/cli/arguments.h"
#include "util/prelude.h"
#include "view/analyze/filter.h"
#include "view/text/style.h"

namespace mtrace::cli {

inline constexpr char kExitLookHelp[] =
    R"(Look for lost blocks when the program exits, before exit handlers and destructors run, as
    memlog unreachable does in a running process. The exit waits for it. The suppressions that
    LSAN_OPTIONS names count.)";
inline constexpr Option kAfterExitOption = {
    "--after-exit",
    "",
    "",
    R"(With --unreachable: look once more when exit handlers and destructors have run.)",
    "",
    "--unreachable"};

// What was found in one process.
struct ExitLook {
  std::string name;
  pid_t pid = 0;
  ledger::HoldPoint point = ledger::HoldPoint::kExit;
  std::string trouble;  // why the process was not looked at, as in AttachError; empty: it was
  std::string unknown;  // process::HeapScan::unknown()
  size_t blocks = 0;    // looked at
  std::array<process::ReachSum, 4> sums;  // of these, by Reach
  analyze::StacksLeftOut suppressed;      // lost in any way
  profile::Memlog lost;                   // what is definitely lost, as a report without names
};

// Of each process the look that tells what it leaves behind: the last one at its end, or its last
// leak check if that stood for it.
std::vector<ExitLook> last_looks(std::vector<ExitLook> found);

// Returns a line on what is indirectly and possibly lost; empty: nothing is.
std::string other_losses_text(const std::vector<ExitLook>& looks, const text::Style& style);

struct ExitLookSettings {
  std::string ledgers;      // their directory; empty: nothing is looked at
  bool after_exit = false;  // also
  std::vector<analyze::StackPattern> suppressions;
};

// Reads --after-exit, --suppressions and LSAN_OPTIONS. `program`: its path. Throws UsageError, and
// FormatError for a suppressions file.
ExitLookSettings exit_look_settings(const Arguments& arguments, const std::string& ledgers,
                                    const std::string& program);

class ExitLooks {
 public:
  explicit ExitLooks(ExitLookSettings settings)
      : settings_(std::move(settings)), holds_(settings_.ledgers, settings_.after_exit) {}

  // For launch(): serves the processes that wait.
  process::Tick tick();
  std::vector<ExitLook>& found() { return found_; }

 private:
  void look(pid_t pid, ledger::LedgerFile& ledger, ledger::HoldPoint point);
  void search(ExitLook& found, ledger::LedgerFile& ledger) const;

  ExitLookSettings settings_;
  process::ExitHolds holds_;
  std::vector<ExitLook> found_;
};

}  // namespace mtrace::cli
