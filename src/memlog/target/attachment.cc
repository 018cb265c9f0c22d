#include "target/attachment.h"

#include <exception>
#include <string>

#include "target/attach.h"
#include "target/attach_settings.h"
#include "target/leftovers.h"
#include "target/preload.h"
#include "target/process_image.h"

namespace mtrace::target {
namespace {

constexpr std::chrono::seconds kTimeout{kAttachTimeout};

}  // namespace

Attachment::Attachment(pid_t pid) : pid_(pid) {
  const std::string library = find_library();
  sweep_ledgers();
  // The ledger is in memory. After detach the process keeps the file for the next time; the library
  // removes it when the process ends.
  const std::string options = attach_settings(pid, {std::string("MTRACE_LEDGER=") + kLedgerPlace,
                                                    "MTRACE_SIGNAL=none", "MTRACE_EXIT_REPORT=0"});
  stopped_ = with_target(pid, kTimeout, [&](const target::ProcessImage& target, auto left) {
               return attach(target, library, options, left);
             }).stopped;
}

Attachment::~Attachment() {
  try {
    with_target(pid_, kTimeout,
                [](const target::ProcessImage& target, auto left) { return detach(target, left); });
  } catch (const std::exception&) {
    // The process has ended, or reaches no safe point. In the latter case the library stays and
    // counts.
  }
  sweep_ledgers(pid_);
}

}  // namespace mtrace::target
