#include "process/inspect/clock.h"

#include <chrono>
#include <ctime>

#include "model/ledger/ledger_state.h"

namespace mtrace::process {

uint64_t real_time_now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

uint64_t ticks_now(const format::LedgerHeader& header) {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const uint64_t nanoseconds =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  return nanoseconds > header.clock_zero ? ledger::ticks_in(nanoseconds - header.clock_zero) : 0;
}

}  // namespace mtrace::process
