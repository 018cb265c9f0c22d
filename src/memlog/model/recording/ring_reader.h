// Reads the rings of a traced process (format/event_ring.h). Trusts nothing in them.
#pragma once

#include "format/event_log.h"
#include "format/event_ring.h"
#include "util/machine.h"
#include "util/prelude.h"

namespace mtrace::events {

// A record that is due: with an address, and the units behind the first.
struct RingRecord {
  format::EventRecord kind;
  uint8_t call;
  uint64_t stamp;
  uint64_t low;       // the lowest 45 bits of the word
  uint64_t position;  // of its first unit, in the ring
};

class RingReader {
 public:
  explicit RingReader(format::EventRing& ring) : ring_(&ring) {}

  // Looks at what was reserved up to now. Returns whether there was anything new. All records with
  // smaller stamps than `settled` are reserved by now. `waited`: seconds since the last look, in
  // which others went on. After a second of that a record which does not get complete is given up.
  bool look(uint64_t settled, double waited);
  // The process has ended: nothing gets complete any more.
  void end() { ended_ = true; }

  // The stamp of the next record that is complete; UINT64_MAX: there is none.
  uint64_t next_stamp() const { return next_stamp_; }
  // No later record of this ring has a smaller stamp.
  uint64_t limit() const { return blocked_ ? std::max(last_stamp_, clear_) : UINT64_MAX; }
  const RingRecord& next() const { return next_; }
  // Unit `number` of the next record.
  const format::EventUnit& unit(unsigned number) const { return at(next_.position + number); }
  // Text of `size` bytes in it, from a unit on.
  std::string text(unsigned first_unit, size_t size) const;
  // Goes on to the one after it.
  void take();
  // Units that are complete and not taken.
  uint64_t backlog() const { return looked_ - cursor_; }
  // Tells the thread what it can use again. True: something.
  bool release();
  uint64_t lost() const { return __atomic_load_n(&ring_->lost, __ATOMIC_RELAXED); }
  uint64_t given_up() const { return given_up_; }

 private:
  const format::EventUnit& at(uint64_t position) const {
    return ring_->units[position % format::kEventUnits];
  }
  // Units of the record at a position; 0: it is not complete.
  unsigned complete_units(uint64_t position, uint64_t end, RingRecord* record) const;
  void find_next();
  bool give_up(double waited, uint64_t reserved);

  format::EventRing* ring_;
  uint64_t cursor_ = 0;  // what was taken
  uint64_t looked_ = 0;  // what is known to be complete
  uint64_t released_ = 0;
  uint64_t next_stamp_ = UINT64_MAX;
  uint64_t last_stamp_ = 0;  // of what is known to be complete
  uint64_t clear_ = 0;       // up to there all was complete once
  unsigned next_units_ = 0;
  bool blocked_ = false;
  bool ended_ = false;
  double blocked_for_ = 0;  // seconds
  uint64_t given_up_ = 0;
  RingRecord next_ = {};
};

// The times of events: what the stamps of a traced process are in steps of an event log.

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
    return util::machine::counter();
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
