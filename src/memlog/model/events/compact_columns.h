// What compact chunks are made of: what an event does is an entry of a table, most often one that
// was there before, and which block it frees a distance in the order of allocation. A program's
// loop makes the same few symbols again and again, which zstd writes as one reference.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "format/event_log.h"
#include "model/events/block_addresses.h"
#include "model/events/column.h"
#include "model/events/event_log.h"

namespace mtrace::events {

inline constexpr uint64_t kStepsOfTick = format::kEventTick / format::kEventTimeStep;
inline constexpr size_t kNoItem = std::numeric_limits<size_t>::max();

struct EventEntry {
  uint8_t code = 0;
  uint8_t order = 0;
  uint8_t place = 0;
  uint32_t stack = 0;
  uint64_t requested = 0;
  uint64_t usable = 0;

  bool operator==(const EventEntry&) const = default;
  template <typename H>
  friend H AbslHashValue(H hash, const EventEntry& one) {
    return H::combine(std::move(hash), one.code, one.order, one.place, one.stack, one.requested,
                      one.usable);
  }
};

// Marks have their time in steps; what follows is a step later at least. So "before the report" and
// "after the note" are exact.
inline bool is_mark(Kind kind) {
  return kind == Kind::kReport || kind == Kind::kNote || kind == Kind::kStart ||
         kind == Kind::kStop || kind == Kind::kFork;
}
inline bool begins_block(Kind kind) {
  return kind == Kind::kAllocation || kind == Kind::kRealloc || kind == Kind::kInherited;
}
inline bool ends_block(Kind kind) { return kind == Kind::kFree || kind == Kind::kReallocBegin; }

// The blocks of a chunk in the order of allocation. A free is a distance there: twice the number of
// younger blocks that live, or twice the distance from the block behind the one that the thread
// freed last, plus 1; the smaller of the two. Stacks and queues, and whole containers, are freed at
// small distances.
class BlockOrder {
 public:
  void add() { order_.add(); }
  uint64_t remove(size_t item, uint32_t thread) {
    const size_t younger = order_.younger(item);
    const uint64_t distance = std::min<uint64_t>(
        2 * younger, 2 * zigzag(expected(thread) - static_cast<int64_t>(younger)) + 1);
    take(item, thread);
    return distance;
  }
  size_t remove_at(uint64_t distance, uint32_t thread) {
    const auto half = static_cast<int64_t>(distance >> 1);
    const int64_t younger =
        (distance & 1) == 0 ? half : expected(thread) - from_zigzag(static_cast<uint64_t>(half));
    if (younger < 0 || static_cast<uint64_t>(younger) >= order_.count()) throw DamagedChunk();
    const size_t item = order_.find(static_cast<size_t>(younger));
    take(item, thread);
    return item;
  }

 private:
  // How many are younger than the block that follows what the thread freed last.
  int64_t expected(uint32_t thread) const {
    const size_t last = thread < last_.size() ? last_[thread] : kNoItem;
    return static_cast<int64_t>(last == kNoItem ? order_.count() : order_.younger(last)) - 1;
  }
  void take(size_t item, uint32_t thread) {
    order_.remove(item);
    if (thread >= last_.size()) last_.resize(thread + size_t{1}, kNoItem);
    last_[thread] = item;
  }

  LiveOrder order_;
  std::vector<size_t> last_;  // by thread
};

// Numbers of blocks that are written out: the difference from the one before.
class Births {
 public:
  int64_t encode(uint64_t birth) {
    return static_cast<int64_t>(birth - std::exchange(last_, birth));
  }
  uint64_t decode(int64_t difference) { return last_ += static_cast<uint64_t>(difference); }

 private:
  uint64_t last_ = 0;
};

}  // namespace mtrace::events
