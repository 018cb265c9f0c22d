// The times of events: what the stamps of a traced process are in steps of an event log.
#pragma once

#include <x86intrin.h>

#include <cstdint>
#include <ctime>

#include "format/event_log.h"
#include "format/event_ring.h"

namespace mtrace::events {

// Nanoseconds.
inline uint64_t now_of(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// A whole number of steps, so that the times of events are.
inline uint64_t start_of(const format::EventRingHeader& header) {
  return header.zero_real / format::kEventTimeStep * format::kEventTimeStep;
}

// Turns stamps into steps of the format since the start. A straight line from the start to now:
// the longer the process runs, the better is its slope known.
class StampClock {
 public:
  explicit StampClock(const format::EventRingHeader& header)
      : counter_(header.counter != 0),
        zero_(header.zero_stamp),
        zero_real_(start_of(header)),
        offset_(static_cast<int64_t>(now_of(CLOCK_REALTIME) - now_of(CLOCK_MONOTONIC))) {
    look();
  }
  // A stamp of this moment.
  uint64_t stamp() const {
    if (!counter_) return now_of(CLOCK_MONOTONIC);
    unsigned processor = 0;
    return __rdtscp(&processor);
  }
  void look() {
    if (!counter_) return;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 3; ++i) {
      const uint64_t before = stamp();
      const uint64_t real = now_of(CLOCK_MONOTONIC) + static_cast<uint64_t>(offset_);
      const uint64_t after = stamp();
      if (after - before >= least || after <= zero_ || real <= zero_real_) continue;
      least = after - before;
      steps_ = static_cast<double>(real - zero_real_) / static_cast<double>(after - zero_) /
               format::kEventTimeStep;
    }
  }
  uint64_t steps(uint64_t stamp) const {
    if (stamp <= zero_) return 0;
    return static_cast<uint64_t>(static_cast<double>(stamp - zero_) * steps_);
  }

 private:
  bool counter_;
  uint64_t zero_;
  uint64_t zero_real_;
  int64_t offset_;
  double steps_ = 1.0 / format::kEventTimeStep;
};

}  // namespace mtrace::events
