// What a file of a log must begin with, if it has older files: the blocks that live, and sums of
// all that was.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>

#include "model/events/event_log.h"
#include "model/events/live_blocks.h"

namespace mtrace::events {

class LogState {
 public:
  // `short_lived`: as in EventHeader.
  explicit LogState(uint64_t short_lived) : short_lived_(short_lived) {}
  // Takes the next event of the log.
  void apply(const Event& event);
  // Takes blocks that are only counted.
  void count(const LeftOut& more);

  const LiveBlocks& blocks() const { return blocks_; }
  // By stack, without the blocks that live.
  const absl::btree_map<uint32_t, LeftOut>& sums() const { return sums_; }
  // For a file that begins at that time. Its unknown frees are those of blocks()' besides.
  BeforeFile before(uint64_t now) const;

 private:
  uint64_t short_lived_;
  LiveBlocks blocks_;
  absl::btree_map<uint32_t, LeftOut> sums_;
  BeforeFile before_;
  int64_t live_bytes_ = 0;  // with those that are only counted
  int64_t live_blocks_ = 0;
};

}  // namespace mtrace::events
