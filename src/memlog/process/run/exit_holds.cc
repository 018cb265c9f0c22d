#include "process/run/exit_holds.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>

#include "format/ledger.h"
#include "process/inspect/ledgers.h"
#include "process/ptrace/interruption.h"

namespace mtrace::process {

using format::ExitHold;
using ledger::HoldPoint;

std::string exit_hold_setting() { return fmt::format("MTRACE_HOLD_EXIT={}", ::getpid()); }

void ExitHolds::find_ledgers() {
  std::error_code error;
  std::erase_if(known_,
                [&](const auto& one) { return !std::filesystem::exists(one.first, error); });
  for (const auto& entry : std::filesystem::directory_iterator(ledgers_, error)) {
    const std::string path = entry.path();
    if (!path.ends_with(format::kLedgerSuffix) || known_.contains(path)) continue;
    try {
      known_.emplace(path, std::make_unique<ledger::LedgerFile>(path));
    } catch (const std::exception&) {
      continue;  // it is only being made, or has gone: the next look tells
    }
  }
}

void ExitHolds::serve_one(ledger::LedgerFile& ledger, HoldPoint point, const Look& look) const {
  ledger::set_hold(ledger, point, ExitHold::kTaken);
  try {
    ledger.refresh();
    const pid_t pid = process_of(ledger);
    if (pid != 0) look(pid, ledger, point);
    if (point == HoldPoint::kExit && after_exit_) {
      ledger::set_hold(ledger, HoldPoint::kAfterExit, ExitHold::kWanted);
    }
  } catch (...) {
    ledger::set_hold(ledger, point, ExitHold::kOver);
    throw;
  }
  ledger::set_hold(ledger, point, ExitHold::kOver);
}

void ExitHolds::serve(const Look& look) {
  // One that came before a look is the program's, and does not end the look.
  if (interrupted()) return;
  find_ledgers();
  for (const auto& [path, ledger] : known_) {
    for (const HoldPoint point : ledger::kHoldPoints) {
      if (!ledger::waits_at(*ledger, point)) continue;
      if (interrupted()) return;
      serve_one(*ledger, point, look);
    }
  }
}

}  // namespace mtrace::process
