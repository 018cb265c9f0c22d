// mlockall: keeps the library's mappings out of what the program locks.
#include <errno.h>
#include <sys/mman.h>

#include "base/locked_memory.h"
#include "base/syscall.h"
#include "next/export.h"
#include "next/next_functions.h"
#include "record/recorder.h"

namespace mtrace::hook {
namespace {

int real_mlockall(int flags) {
  if (g_next.mlockall != nullptr) return g_next.mlockall(flags);
  const long result = sys::raw_mlockall(flags);
  if (!sys::failed(result)) return 0;
  if (is_relocated()) errno = static_cast<int>(-result);
  return -1;
}

}  // namespace
}  // namespace mtrace::hook

using namespace mtrace;
using namespace mtrace::hook;

// The kernel compares all mapped memory with the limit. If only the library's part exceeds it, the
// program's mappings are locked one by one.
MTRACE_EXPORT int mlockall(int flags) noexcept {
  constexpr int kKnown = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;
  if (!counting() || (flags & MCL_CURRENT) == 0 || (flags & ~kKnown) != 0) {
    const int result = real_mlockall(flags);
    if (result == 0 && (flags & MCL_FUTURE) != 0) sys::keep_unlocked();
    return result;
  }
  const int before = errno;
  // MCL_ONFAULT: makes no page here. The program's, not the library's, are made below.
  if (real_mlockall(flags | MCL_ONFAULT) != 0) {
    if (errno != ENOMEM || !sys::lock_limit_fits_program()) return -1;
  }
  if ((flags & MCL_FUTURE) != 0) {
    sys::keep_unlocked();
    if (real_mlockall(flags & ~MCL_CURRENT) != 0) return -1;
  }
  if (!sys::lock_programs_memory((flags & MCL_ONFAULT) != 0)) return real_mlockall(flags);
  errno = before;
  return 0;
}
