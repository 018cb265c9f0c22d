// The most that was ever live at once, and each stack's share in it at that very moment, without a
// log of events.
//
// A peak is known by its height, because each new one is higher. A set of counters that is touched
// for the first time since the last new peak first sets aside how much it holds (CounterSet::mark
// says since which peak that stands); its share in the peak is what was set aside or, untouched,
// what it holds. The order is: set aside, count, raise the peak.
//
// With one thread this is exact. With T threads each keeps what it has added to itself until that
// exceeds a batch, so that threads do not fight over one word. The height found is then off by at
// most the sum of the largest batch that each ever had: at every moment the total differs from what
// was told by what the threads keep. The shares are those of the moment at which the peak was
// raised; what they add up to is printed, and its distance from the height plus that sum bounds the
// error (doc/internals/tables.md has the argument). It rests on each thread telling for itself: what another
// has read of it can be out of date by any amount before it is told.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "ledger/counters.h"
#include "ledger/thread_slots.h"

namespace mtrace::ledger {

class Peak {
 public:
  // Before the counters of `set` change.
  void set_aside(CounterSet& set, bool owner) const {
    const uint64_t height = load_acquire(height_) & kHeightBits;
    if ((load(set.mark) & kHeightBits) != height) [[unlikely]]
      set_aside_slowly(set, owner, height);
  }

  // True: that is done, and the set is the thread's own; `ownership` is owned_by() the thread.
  bool is_own_and_aside(const CounterSet& set, uint64_t ownership) const {
    return load(set.mark) == (load_acquire(height_) | ownership);
  }

  // After it: the calling thread, whose slot is `number`, has `bytes` more live, in `blocks` more.
  void changed(ThreadSlots& threads, uint32_t number, int64_t bytes, int64_t blocks) {
    ThreadSlot& slot = threads.slot(number);
    if (number != 0) {
      return bytes < 0 ? shrunk(threads, slot, -bytes, -blocks)
                       : grown(threads, slot, bytes, blocks);
    }
    fetch_add<uint64_t>(slot.live_blocks, blocks);
    fetch_add<uint64_t>(slot.live_bytes, bytes);
    tell_at_once(threads, bytes);
  }
  // The same of a thread whose slot is at hand, which is not slot 0. What has grown is not below
  // the lower limit: who wants the thread to come takes both away.
  [[gnu::always_inline]] void grown(ThreadSlots& threads, ThreadSlot& slot, uint64_t bytes,
                                    uint64_t blocks) {
    add_own(slot.live_blocks, blocks);
    add_own(slot.live_bytes, bytes);
    if (static_cast<int64_t>(load(slot.live_bytes)) > load(slot.high)) [[unlikely]]
      tell(threads, slot);
  }
  [[gnu::always_inline]] void shrunk(ThreadSlots& threads, ThreadSlot& slot, uint64_t bytes,
                                     uint64_t blocks) {
    subtract_own(slot.live_blocks, blocks);
    subtract_own(slot.live_bytes, bytes);
    if (static_cast<int64_t>(load(slot.live_bytes)) < load(slot.low)) [[unlikely]]
      tell(threads, slot);
  }

  // A thread other than the first has come: from now on threads keep and tell.
  void join(ThreadSlots& threads);

  // What the set held at the last peak. Looks again when another thread sets aside meanwhile; not
  // for ever, because it may be one that does not run until this returns.
  uint64_t share(const CounterSet& set) const {
    constexpr int kMostLooks = 100;
    for (int look = 1;; ++look) {
      const uint64_t height = load_acquire(height_);
      const uint64_t mark = load_acquire(set.mark);
      const bool aside = (mark & ~kOwners) == (height & kHeightBits);
      const uint64_t share = aside ? load_acquire(set.set_aside) : held(set);
      const bool same = (mark & kTaking) == 0 && load_acquire(set.mark) == mark &&
                        load_acquire(height_) == height;
      if (same || look == kMostLooks) return share;
    }
  }

  uint64_t height() const { return load(height_); }  // bytes
  // The height, or what is live as far as threads have told and seem to keep, if that is more.
  uint64_t height_now(const ThreadSlots& threads) const;
  uint64_t when() const { return load(when_); }  // ticks
  // By how much height() may be off: what threads may be keeping.
  uint64_t kept_at_most(const ThreadSlots& threads) const;

  // In the child of a fork, alone: `bytes` are live, and that is the peak so far.
  void restart(uint64_t bytes, uint64_t ticks);

 private:
  static constexpr uint64_t kTaking = uint64_t{1} << 63;  // in a mark: set_aside is being written
  static constexpr uint64_t kOwners = ~kHeightBits & ~kTaking;
  static constexpr int64_t kLargestBatch = 64 * 1024;

  static uint64_t held(const CounterSet& set) {
    const uint64_t freed = load_acquire(set.freed_bytes);
    return load_acquire(set.allocated_bytes) - freed;
  }
  void set_aside_slowly(CounterSet& set, bool owner, uint64_t height) const;
  int64_t batch(const ThreadSlots& threads, const ThreadSlot& slot) const;
  // Adds what the first thread has kept, if it has not come to do so itself since join().
  void tell_for_first(ThreadSlots& threads);
  // Adds what the calling thread has kept to the total.
  void tell(ThreadSlots& threads, ThreadSlot& slot);
  // The same for one without a slot, which keeps nothing.
  void tell_at_once(ThreadSlots& threads, int64_t bytes);
  uint64_t add_to_total(uint64_t step);
  void raise(uint64_t total);

  friend struct Layout;

  uint64_t total_ = 0;       // live bytes, as far as threads have told
  uint64_t height_ = 0;      // bytes
  uint64_t when_ = 0;        // ticks
  uint32_t first_owes_ = 0;  // the first thread has not told since the second came
};

}  // namespace mtrace::ledger
