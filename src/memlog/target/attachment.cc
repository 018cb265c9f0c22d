#include "target/attachment.h"

#include <fmt/format.h>

#include <exception>
#include <string>

#include "target/attach_settings.h"
#include "target/interruption.h"
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

Attachment::Attachment(pid_t pid) : pid_(pid) {
  sweep_ledgers();
  // The ledger is in memory. After detach the process keeps the file for the next time; the library
  // removes it when the process ends.
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
    with_target(pid_, timeout,
                [](const target::ProcessImage& target, auto left) { return detach(target, left); });
  } catch (const std::exception&) {
    // The process has ended, or reaches no safe point. In the latter case the library stays and
    // counts.
  }
  sweep_ledgers(pid_);
}

}  // namespace mtrace::target
