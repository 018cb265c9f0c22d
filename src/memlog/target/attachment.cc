#include "target/attachment.h"

#include <fmt/format.h>

#include <exception>
#include <string>

#include "target/attach_settings.h"
#include "target/interruption.h"
#include "target/ledgers.h"
#include "target/leftovers.h"
#include "target/preload.h"
#include "target/process_image.h"

namespace mtrace::target {
namespace {

constexpr std::chrono::milliseconds kTimeout = std::chrono::seconds(kAttachTimeout);

}  // namespace

Done attach_with(pid_t pid, const std::vector<std::string>& settings,
                 std::chrono::milliseconds timeout) {
  const std::string block = attach_settings(pid, settings);
  const std::string library = find_library();
  return with_target(pid, timeout, [&](const ProcessImage& target, auto left) {
    return attach(target, library, block, left);
  });
}

Done detach_from(pid_t pid, std::chrono::milliseconds timeout, bool keep_ledger) {
  std::string why;
  const auto ledger = keep_ledger ? nullptr : ledger_of(pid, why);
  const Done done = with_target(
      pid, timeout, [](const ProcessImage& target, auto left) { return detach(target, left); });
  if (ledger != nullptr) remove_ledger(pid, *ledger);
  return done;
}

Attachment::Attachment(pid_t pid) : pid_(pid) {
  sweep_ledgers();
  stopped_ = attach_with(pid,
                         {fmt::format("MTRACE_LEDGER={}", kLedgerPlace), "MTRACE_SIGNAL=none",
                          "MTRACE_EXIT_REPORT=0"},
                         kTimeout)
                 .stopped;
}

Attachment::~Attachment() {
  constexpr std::chrono::milliseconds kShort{500};  // where a signal is to end memlog
  const std::chrono::milliseconds timeout = interrupted() ? kShort : kTimeout;
  const Uninterrupted end;
  try {
    detach_from(pid_, timeout, false);
  } catch (const std::exception&) {
    // The process has ended, or reaches no safe point. In the latter case the library stays and
    // counts.
  }
  sweep_ledgers(pid_);
}

}  // namespace mtrace::target
