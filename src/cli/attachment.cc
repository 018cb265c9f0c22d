#include "cli/attachment.h"

#include <exception>
#include <string>

#include "attach/attach.h"
#include "cli/attach_options.h"
#include "cli/attach_target.h"
#include "cli/leftovers.h"
#include "cli/preload.h"

namespace mtrace::cli {
namespace {

constexpr std::chrono::seconds kTimeout{kAttachTimeout};

}  // namespace

Attachment::Attachment(pid_t pid) : pid_(pid) {
  const std::string library = find_library();
  sweep_ledgers();
  // In memory. A process that is detached from keeps its file for the next time; the library
  // removes it when the process ends.
  const std::string options = attach_options(pid, {std::string("MTRACE_LEDGER=") + kLedgerPlace,
                                                   "MTRACE_SIGNAL=none", "MTRACE_EXIT_REPORT=0"});
  stopped_ = with_target(pid, kTimeout, [&](const attach::Target& target, auto left) {
               return attach::attach(target, library, options, left);
             }).stopped;
}

Attachment::~Attachment() {
  try {
    with_target(pid_, kTimeout, [](const attach::Target& target, auto left) {
      return attach::detach(target, left);
    });
  } catch (const std::exception&) {
    // It has ended, or does not come to a safe point: then the library stays and counts.
  }
  sweep_ledgers(pid_);
}

}  // namespace mtrace::cli
