#include "target/exit_holds.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>

#include "format/ledger.h"
#include "target/interruption.h"
#include "target/ledgers.h"

namespace mtrace::target {

using format::ExitHold;
using live::HoldPoint;

std::string exit_hold_setting() { return fmt::format("MTRACE_HOLD_EXIT={}", ::getpid()); }

void ExitHolds::find_ledgers() {
  std::error_code error;
  std::erase_if(known_,
                [&](const auto& one) { return !std::filesystem::exists(one.first, error); });
  for (const auto& entry : std::filesystem::directory_iterator(ledgers_, error)) {
    const std::string path = entry.path();
    if (!path.ends_with(format::kLedgerSuffix) || known_.contains(path)) continue;
    try {
      known_.emplace(path, std::make_unique<live::LedgerFile>(path));
    } catch (const std::exception&) {
      continue;  // it is only being made, or has gone: the next look tells
    }
  }
}

void ExitHolds::serve_one(live::LedgerFile& ledger, HoldPoint point, const Look& look) const {
  live::set_hold(ledger, point, ExitHold::kTaken);
  if (point == HoldPoint::kCheck) live::set_check_found(ledger, format::kLedgerUnchecked);
  try {
    ledger.refresh();
    const pid_t pid = process_of(ledger);
    const uint64_t lost = pid != 0 ? look(pid, ledger, point) : 0;
    if (point == HoldPoint::kCheck) {
      constexpr uint64_t kMost = format::kLedgerUnchecked - 1;
      live::set_check_found(ledger, static_cast<uint32_t>(std::min(lost, kMost)));
    }
    if (point == HoldPoint::kExit && after_exit_) {
      live::set_hold(ledger, HoldPoint::kAfterExit, ExitHold::kWanted);
    }
  } catch (...) {
    live::set_hold(ledger, point, ExitHold::kOver);
    throw;
  }
  live::set_hold(ledger, point, ExitHold::kOver);
}

void ExitHolds::serve(const Look& look) {
  // One that came before a look is the program's, and does not end the look.
  if (interrupted()) return;
  find_ledgers();
  for (const auto& [path, ledger] : known_) {
    for (const HoldPoint point : live::kHoldPoints) {
      if (!live::waits_at(*ledger, point)) continue;
      if (interrupted()) return;
      serve_one(*ledger, point, look);
    }
  }
}

}  // namespace mtrace::target
