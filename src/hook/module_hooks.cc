// dlclose: what is unloaded keeps its names, and what is loaded in its place later is another
// module. dlopen is not hooked, because it looks at its caller.
#include <errno.h>

#include "hook/lifecycle.h"
#include "hook/real.h"
#include "hook/tracker.h"
#include "unwind/modules.h"

#define MTRACE_EXPORT extern "C" __attribute__((visibility("default")))

using namespace mtrace::hook;

namespace {

void retire(uintptr_t begin, uintptr_t end, uint32_t epoch, void*) {
  mtrace::ledger::g_ledger.stacks.retire(begin, end, epoch);
}

}  // namespace

MTRACE_EXPORT int dlclose(void* handle) noexcept {
  if (!start() || g_real.dlclose == nullptr) return -1;
  const int result = g_real.dlclose(handle);
  if (result == 0 && counting()) mtrace::unwind::forget_unloaded(retire, nullptr);
  return result;
}
