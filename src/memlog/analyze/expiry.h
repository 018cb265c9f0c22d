// Blocks that outlive a time: which stacks keep them, and whether they are freed later after all.
// Fed with all live blocks of a process again and again. Times are in ticks of the ledger.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "live/ledger_state.h"

namespace mtrace::analyze {

// What became of a stack's blocks that were made since the watch began.
struct ExpiryStack {
  uint32_t index = 0;  // LedgerStackState::index
  uint64_t expired = 0;
  uint64_t expired_bytes = 0;
  uint64_t freed = 0;  // of those
  uint64_t freed_bytes = 0;
  uint64_t longest = 0;  // ticks that one of the freed had lived, as far as it was seen
  bool muted = false;    // it frees them: the time is too short for it

  uint64_t may_leak() const { return expired - freed; }
};

// What a look has brought, per stack.
struct ExpiryNews {
  const ExpiryStack* stack;
  uint64_t expired;  // new ones
  uint64_t freed;
  bool first;  // nothing of this stack had expired before
  bool muted;  // since this look
};

class Expiry {
 public:
  // Blocks born at `begin` or later count once they are `after` ticks old. A stack is muted when it
  // has freed `mute` of them; 0: never.
  Expiry(uint64_t begin, uint64_t after, uint64_t mute)
      : begin_(begin), after_(after), mute_(mute) {}

  // One look: begin(), see() for each live block, end(). A block counts when it is there, the same,
  // in two looks on end, since what is read while it changes can be of two blocks.
  void begin() { ++look_; }
  void see(const live::LedgerBlock& block, uint64_t now);
  // In the order of their index. Pointers hold until the next look.
  std::vector<ExpiryNews> end(uint64_t now);

  std::vector<const ExpiryStack*> stacks() const;  // by index
  uint64_t expired() const { return expired_; }
  size_t stack_count() const { return stacks_.size(); }
  // By stack, the birth of the oldest block that has expired and lives.
  absl::flat_hash_map<uint32_t, uint64_t> oldest() const;

 private:
  struct Seen {
    uint64_t size;
    uint64_t birth;
    uint64_t look;  // the last that has seen it
    uint32_t stack;
    bool expired;
  };
  struct Change {
    uint64_t expired = 0;
    uint64_t freed = 0;
  };

  uint64_t begin_;
  uint64_t after_;
  uint64_t mute_;
  uint64_t look_ = 0;
  uint64_t expired_ = 0;
  absl::flat_hash_map<uint64_t, Seen> seen_;  // old enough, by address
  absl::flat_hash_map<uint32_t, ExpiryStack> stacks_;
  absl::flat_hash_map<uint32_t, Change> changes_;
};

}  // namespace mtrace::analyze
