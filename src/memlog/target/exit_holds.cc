#include "target/exit_holds.h"

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <system_error>

#include "format/ledger.h"
#include "live/exit_hold.h"
#include "target/ledgers.h"

namespace mtrace::target {

using format::ExitHold;

std::string exit_hold_setting() { return fmt::format("MTRACE_HOLD_EXIT={}", ::getpid()); }

void ExitHolds::find_ledgers() {
  std::error_code error;
  std::erase_if(known_, [&](const auto& one) { return !std::filesystem::exists(one.first, error); });
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

void ExitHolds::serve(const std::function<void(pid_t, live::LedgerFile&)>& look) {
  find_ledgers();
  for (const auto& [path, ledger] : known_) {
    if (!live::waits_at_exit(*ledger)) continue;
    live::set_exit_hold(*ledger, ExitHold::kTaken);
    try {
      ledger->refresh();
      if (const pid_t pid = process_of(*ledger)) look(pid, *ledger);
    } catch (...) {
      live::set_exit_hold(*ledger, ExitHold::kOver);
      throw;
    }
    live::set_exit_hold(*ledger, ExitHold::kOver);
  }
}

}  // namespace mtrace::target
