// The peak: the most bytes that were ever live at once, and each stack's share at that moment,
// without a log of events.
//
// A peak is identified by its height, because each new one is higher. A set of counters sets aside
// how much it holds before its first change after a new peak (CounterSet::mark says which peak);
// its share in the peak is what it set aside or, if unchanged, what it holds. The order is: set
// aside, count, raise the peak.
//
// With one thread this is exact. With several, each thread publishes ("tells") what it has added
// only when that exceeds a batch, so that threads do not contend for one word. The height is then
// off by at most the sum of the largest batch that each thread ever had: that much may be
// unpublished at any moment. The shares are those of the moment at which the peak was raised. A
// report prints their sum; its distance from the height, plus the sum of the batches, bounds the
// error (proof: doc/internals/tables.md). The bound requires that each thread publishes for itself:
// what another thread has read for it may be out of date by any amount when published.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "ledger/counters.h"
#include "ledger/thread_slots.h"

namespace mtrace::ledger {

// Calls passed(live bytes) when these are at a new peak, and not below the mark; from inside an
// operation, at each new peak until it sets another mark.
struct PeakWatch {
  uint64_t mark;  // bytes; 0: none
  void (*passed)(uint64_t live);
};
inline constinit PeakWatch g_peak_watch = {};
// Calls fell() when fewer bytes are live than the floor, at each publication until the floor is set
// lower; from inside an operation that is done with the tables of blocks.
struct FallWatch {
  uint64_t floor;  // bytes; 0: none
  void (*fell)();
};
inline constinit FallWatch g_fall_watch = {};

class Peak {
 public:
  // Call before the counters of `set` change.
  void set_aside(CounterSet& set, bool owner) const {
    const uint64_t height = load_acquire(height_) & kHeightBits;
    if ((load(set.mark) & kHeightBits) != height) [[unlikely]]
      set_aside_slowly(set, owner, height);
  }

  // Whether the set has set aside and is the thread's own; `ownership` is owned_by() the thread.
  bool is_own_and_aside(const CounterSet& set, uint64_t ownership) const {
    return load(set.mark) == (load_acquire(height_) | ownership);
  }

  // Call after it: the thread with slot `number` (0: none) has `bytes` and `blocks` more live.
  void changed(ThreadSlots& threads, uint32_t number, int64_t bytes, int64_t blocks) {
    ThreadSlot& slot = threads.slot(number);
    if (number != 0) {
      return bytes < 0 ? shrunk(threads, slot, -bytes, -blocks)
                       : grown(threads, slot, bytes, blocks);
    }
    fetch_add<uint64_t>(slot.live_blocks, blocks);
    fetch_add<uint64_t>(slot.live_bytes, bytes);
    publish_at_once(threads, bytes);
  }
  // grown() and shrunk() are changed() for a thread with a slot of its own, not slot 0. Each checks
  // one limit: to make a thread publish at its next operation, both limits are removed.
  [[gnu::always_inline]] void grown(ThreadSlots& threads, ThreadSlot& slot, uint64_t bytes,
                                    uint64_t blocks) {
    add_own(slot.live_blocks, blocks);
    add_own(slot.live_bytes, bytes);
    if (static_cast<int64_t>(load(slot.live_bytes)) > load(slot.high)) [[unlikely]]
      publish(threads, slot);
  }
  [[gnu::always_inline]] void shrunk(ThreadSlots& threads, ThreadSlot& slot, uint64_t bytes,
                                     uint64_t blocks) {
    subtract_own(slot.live_blocks, blocks);
    subtract_own(slot.live_bytes, bytes);
    if (static_cast<int64_t>(load(slot.live_bytes)) < load(slot.low)) [[unlikely]]
      publish(threads, slot);
  }

  // A thread other than the first has started: from now on threads publish in batches.
  void join(ThreadSlots& threads);

  // Bytes that the set held at the last peak. Reads again when another thread sets aside meanwhile,
  // but not for ever: that thread may not run until this returns.
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
  // The height or, if greater, what is live with what threads seem not to have published. Bytes.
  uint64_t height_now(const ThreadSlots& threads) const;
  uint64_t when() const { return load(when_); }  // ticks
  // Bytes by which height() may be off: what threads may not have published.
  uint64_t kept_at_most(const ThreadSlots& threads) const;

  // Starts again with `bytes` live as the peak so far. No other thread may be inside the library.
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
  // Publishes for the first thread, if it has not published itself since join().
  void publish_for_first(ThreadSlots& threads);
  // Adds what the calling thread has not published to the total.
  void publish(ThreadSlots& threads, ThreadSlot& slot);
  // Adds `bytes` to the total at once, for a thread without a slot.
  void publish_at_once(ThreadSlots& threads, int64_t bytes);
  uint64_t add_to_total(uint64_t step);
  void look(uint64_t total) const;
  void raise(uint64_t total);

  friend struct Layout;

  uint64_t total_ = 0;       // live bytes that threads have published
  uint64_t height_ = 0;      // bytes
  uint64_t when_ = 0;        // ticks
  uint32_t first_owes_ = 0;  // the first thread has not published since join()
};

}  // namespace mtrace::ledger
