#include "base/clock.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstring>

#include "base/atomic.h"
#include "base/process.h"
#include "base/syscall.h"

namespace mtrace::base {

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

constinit bool internal::counts_stamps = false;

namespace {

// The kernel has found that the processors' counters agree, or it would use another clock.
bool kernel_trusts_counter() {
  char name[8];
  return read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
                   sizeof name) != 0 &&
         strcmp(name, "tsc\n") == 0;
}

bool may_read_counter() {
  int how = 0;
  return call(SYS_prctl, PR_GET_TSC, &how, 0, 0, 0) == 0 && how == PR_TSC_ENABLE;
}

}  // namespace

void find_stamps() {
  internal::counts_stamps =
      machine::has_invariant_counter() && kernel_trusts_counter() && may_read_counter();
}

uint64_t internal::unique_time() {
  static uint64_t last = 0;
  timespec now;
  get_time(CLOCK_MONOTONIC, &now);
  uint64_t seen = load_acquire(last);
  for (;;) {
    const uint64_t time = nanoseconds(now);
    const uint64_t next = time > seen ? time : seen + 1;
    if (compare_exchange(last, seen, next)) return next;
  }
}

}  // namespace mtrace::base
