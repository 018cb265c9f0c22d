#include "cli/attachment.h"

#include <exception>
#include <string>

#include "attach/attach.h"
#include "cli/attach_options.h"
#include "cli/attach_target.h"
#include "cli/preload.h"

namespace mtrace::cli {
namespace {

constexpr std::chrono::seconds kTimeout{kAttachTimeout};
// In memory. The library removes its file there when the process ends.
constexpr char kPlace[] = "MTRACE_LEDGER=/dev/shm";

}  // namespace

Attachment::Attachment(pid_t pid) : pid_(pid) {
  const std::string library = find_library();
  const std::string options =
      attach_options(pid, {kPlace, "MTRACE_SIGNAL=none", "MTRACE_EXIT_REPORT=0"});
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
    return;  // it has ended, or does not come to a safe point: the library stays and counts
  }
}

}  // namespace mtrace::cli
