#include "cli/attachment.h"

#include <unistd.h>

#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "attach/attach.h"
#include "cli/attach_options.h"
#include "cli/attach_target.h"
#include "cli/ledgers.h"
#include "cli/preload.h"
#include "format/ledger.h"
#include "profile/ledger_file.h"

namespace mtrace::cli {
namespace {

constexpr std::chrono::seconds kTimeout{kAttachTimeout};
// In memory. A process that is detached from keeps its file for the next time; the library removes
// it when the process ends.
constexpr char kPlace[] = "/dev/shm";

// Removes the files of those that were killed instead, `pid` among them.
void sweep(pid_t pid) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(kPlace, ignored)) {
    const std::string path = entry.path();
    if (!path.ends_with(format::kLedgerSuffix)) continue;
    try {
      const profile::LedgerFile file(path);
      const bool left = file.header().state == format::LedgerState::kDetached ||
                        static_cast<pid_t>(file.header().pid) == pid;
      if (left && process_of(file) == 0) ::unlink(path.c_str());
    } catch (const std::runtime_error&) {
      continue;  // not ours to look at
    }
  }
}

}  // namespace

Attachment::Attachment(pid_t pid) : pid_(pid) {
  const std::string library = find_library();
  const std::string options = attach_options(
      pid, {std::string("MTRACE_LEDGER=") + kPlace, "MTRACE_SIGNAL=none", "MTRACE_EXIT_REPORT=0"});
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
  sweep(pid_);
}

}  // namespace mtrace::cli
