// Chooses blocks of an event log by what only events know: their whole lives, the chains of their
// reallocs, and all blocks of the same stack.
//
// The log is read once to decide about each block, and once before if the filter asks for groups,
// chains or markers. Memory: a bit for each block; with chains 24 bytes for each chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/events/event_log.h"
#include "model/events/live_blocks.h"

namespace mtrace::events {

struct Range {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;

  bool holds(uint64_t value) const { return value >= least && value <= most; }
};

// Throws std::runtime_error, which says what the log at `path` covers, if all of `asked` is before
// `started` or after `last`. All are nanoseconds since 1970.
void require_covered(const std::string& path, const Range& asked, uint64_t started, uint64_t last);

// A share of 100 percent, in millionths of a percent.
constexpr uint64_t kAllLeaked = 100'000'000;

// A block passes if it passes each that is set. Times are nanoseconds since 1970, durations
// nanoseconds.
struct BlockFilter {
  std::optional<Range> size;  // requested bytes
  std::optional<Range> address;
  std::optional<Range> thread;    // thread id of the thread that allocated the block
  std::optional<Range> lifetime;  // a block that is never freed lives longer than any time
  std::optional<Range> born;
  std::optional<Range> freed;  // a block that is never freed does not pass
  std::optional<uint64_t> alive_at;
  std::optional<uint64_t> alive_until;  // freed then or later, or never
  std::optional<Range> depth;           // frames of its stack
  // Of the block and what realloc made of it, and made it of: allocations; from the first of them
  // to the last free.
  std::optional<Range> chain_length;
  std::optional<Range> chain_age;
  // Of all blocks of its stack: when the first and the last was allocated; the time between; the
  // share that is never freed, of kAllLeaked.
  std::optional<Range> group_first;
  std::optional<Range> group_last;
  std::optional<Range> group_interval;
  std::optional<Range> group_leaked;
  // Allocated between the first note or labelled report with this text and the first that follows
  // it with the other. Empty: from the beginning; to the end.
  std::optional<std::pair<std::string, std::string>> between;

  bool any() const;
};

class BlockSelection {
 public:
  // Reads the log at `path`. Throws what reading throws, and std::runtime_error if a marker is not
  // in the log.
  BlockSelection(const std::string& path, const BlockFilter& filter);

  // `id`: as in LiveBlock.
  bool holds(uint64_t id) const { return id < chosen_.size() && chosen_[id]; }
  // Whether what the event did to the blocks concerns one that is chosen.
  bool holds(const BlockChange& change) const {
    return (change.ended && holds(change.old.id)) ||
           ((change.begun || change.inherited) && holds(change.fresh.id));
  }
  size_t count() const { return count_; }

 private:
  std::vector<bool> chosen_;  // by id
  size_t count_ = 0;
};

}  // namespace mtrace::events
