#include "base/clock.h"

#include <sys/syscall.h>
#include <time.h>

#include "base/hot.h"
#include "base/syscall.h"

namespace mtrace::sys {
namespace {

using internal::GetTime;

int get_time_from_kernel(clockid_t clock, timespec* now) {
  return static_cast<int>(call(SYS_clock_gettime, clock, now));
}

}  // namespace

MTRACE_HOT constinit GetTime internal::get_time = get_time_from_kernel;
MTRACE_HOT constinit uint64_t g_time_zero = 0;

void use_vdso_clock(void* function) {
  const auto found = reinterpret_cast<GetTime>(function);
  timespec now;
  // A vDSO that supports this clock in one call supports it in all.
  if (found != nullptr && found(CLOCK_MONOTONIC_COARSE, &now) == 0) internal::get_time = found;
}

uint64_t coarse_resolution() {
  timespec step = {};
  call(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, &step);
  return internal::nanoseconds(step);
}

}  // namespace mtrace::sys
