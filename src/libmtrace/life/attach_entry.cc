// Entry points of memlog attach and detach, called while the process's other threads are stopped.
#include "base/machine.h"
#include "base/own_memory.h"
#include "base/spawn.h"
#include "base/syscall.h"
#include "base/writer.h"
#include "format/attach_protocol.h"
#include "life/lifecycle.h"
#include "next/interfaces.h"
#include "record/thread_state.h"
#include "report/status.h"

using namespace mtrace;
using namespace mtrace::life;

namespace {

format::Patch* g_patches = nullptr;  // room for format::kMostPatches

void refuse(format::AttachAnswer& answer, const char* reason) {
  Writer(answer.reason, sizeof answer.reason).text(reason).finish();
}

bool is_active() { return mtrace_status_block.mode == format::Mode::kActive; }

void list(format::AttachAnswer& answer, bool attach) {
  constexpr size_t kBytes = format::kMostPatches * sizeof(format::Patch);
  if (g_patches == nullptr) g_patches = static_cast<format::Patch*>(base::map_memory(kBytes));
  if (g_patches == nullptr) return refuse(answer, "no memory for the list of patches");
  answer.patches = reinterpret_cast<uint64_t>(g_patches);
  answer.count = next::list_patches(attach, g_patches);
  if (answer.count <= format::kMostPatches) return;
  answer.count = 0;
  refuse(answer, "the program has too many calls to patch");
}

}  // namespace

MTRACE_EXPORT void mtrace_attach(const char* options, format::AttachAnswer* answer) noexcept {
  *answer = {};
  if (!is_late()) return refuse(*answer, "libmtrace.so is preloaded");
  // Active after an interrupted attach: then list() omits the words that are already patched.
  if (!is_active()) {
    base::keep_unlocked();  // the program may have called mlockall(MCL_FUTURE) before
    const char* reason = start_late(options);
    if (reason != nullptr) return refuse(*answer, reason);
  }
  list(*answer, true);
  if (answer->reason[0] != '\0') stop_late();
}

MTRACE_EXPORT void mtrace_detach(format::AttachAnswer* answer) noexcept {
  *answer = {};
  if (!is_late()) return refuse(*answer, "libmtrace.so is preloaded");
  if (is_active()) stop_late();
  list(*answer, false);
}

MTRACE_EXPORT void mtrace_twin(int64_t gone, uint64_t make, format::TwinAnswer* answer) noexcept {
  *answer = {0, record::thread_state_offset(), sizeof record::t_thread, is_late()};
  if (gone > 0) base::collect_process(static_cast<uint32_t>(gone), false);
  if (make != 0) answer->pid = base::copy_process(base::Helper::kTwin);
}
