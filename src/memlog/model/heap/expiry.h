// Finds the stacks whose blocks outlive a time, and whether they free them later. Gets all live
// blocks of a process at each look. Times are in ticks of the ledger.
#pragma once

#include "model/ledger/ledger_state.h"
#include "util/prelude.h"

namespace mtrace::heap {

// A stack's blocks that were allocated since the watch began.
struct ExpiryStack {
  uint32_t index = 0;  // LedgerStackState::index
  uint64_t expired = 0;
  uint64_t expired_bytes = 0;
  uint64_t freed = 0;  // of the expired blocks
  uint64_t freed_bytes = 0;
  uint64_t longest = 0;  // longest observed life of a freed one, in ticks
  bool muted = false;    // the stack frees them: the time is too short for it
  uint64_t told = 0;     // expiries and frees of which there was news
  // And those of which there was none yet.
  uint64_t untold_expired = 0;
  uint64_t untold_freed = 0;

  uint64_t may_leak() const { return expired - freed; }
};

// When there is news of a stack.
enum class Pace {
  kEachLook,  // that saw a change
  kDoubling,  // when there is as much to tell as has been told: of n changes at most log2(n) + 1
};

// The changes of a stack since the news before.
struct ExpiryNews {
  const ExpiryStack* stack;
  uint64_t expired;  // newly expired blocks
  uint64_t freed;
  bool first;  // the first expired blocks of this stack
  bool muted;  // muted at this look
};

class Expiry {
 public:
  // Blocks born at `begin` or later expire when they are `after` ticks old. A stack is muted when
  // it has freed `mute` expired blocks; 0: never. That is news at once.
  Expiry(uint64_t begin, uint64_t after, uint64_t mute, Pace pace = Pace::kEachLook)
      : begin_(begin), after_(after), mute_(mute), pace_(pace) {}

  // Do one look: begin(), see() for each live block, end(). A block counts only when two
  // consecutive looks see it unchanged: a read during a change can mix two blocks.
  void begin() { ++look_; }
  void see(const ledger::LedgerBlock& block, uint64_t now);
  // Returns the news in the order of stack indices. Pointers are valid until the next look.
  std::vector<ExpiryNews> end(uint64_t now);

  std::vector<const ExpiryStack*> stacks() const;  // sorted by index
  uint64_t expired() const { return expired_; }
  size_t stack_count() const { return stacks_.size(); }
  // By stack: the birth of the oldest expired block that still lives.
  absl::flat_hash_map<uint32_t, uint64_t> oldest() const;

 private:
  struct Seen {
    uint64_t size;
    uint64_t birth;
    uint64_t look;  // the last that saw it
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
  Pace pace_;
  uint64_t look_ = 0;
  uint64_t expired_ = 0;
  absl::flat_hash_map<uint64_t, Seen> seen_;  // blocks old enough to expire, by address
  absl::flat_hash_map<uint32_t, ExpiryStack> stacks_;
  absl::flat_hash_map<uint32_t, Change> changes_;
};

// Adds up expired blocks by group: the stacks that one function is responsible for.

struct ExpiryGroup {
  size_t group = 0;  // as GroupOf has it
  std::vector<const ExpiryStack*> stacks;
  ExpiryStack sum;  // of them; without an index, and `muted` if all are
};

// What a group has to tell: when there is as much as has been told, as Pace::kDoubling has it.
struct ExpiryGroupNews {
  ExpiryGroup group;
  uint64_t expired = 0;  // newly
  uint64_t freed = 0;
  bool muted = false;         // a stack of it was muted at this look
  uint64_t mute_longest = 0;  // ticks: the longest life of a freed block of a stack muted now
};

class ExpiryGroups {
 public:
  // Returns the number of the group of a stack (LedgerStackState::index).
  using GroupOf = std::function<size_t(uint32_t stack)>;

  // Takes the news of a look, of Pace::kEachLook; those of muted stacks are left out. `stacks`: all
  // of them. Returns the groups that have something to tell, by number.
  std::vector<ExpiryGroupNews> add(const std::vector<ExpiryNews>& news,
                                   const std::vector<const ExpiryStack*>& stacks,
                                   const GroupOf& group_of);

  // Returns the groups of `stacks`, those that may leak the most bytes first.
  static std::vector<ExpiryGroup> sums(const std::vector<const ExpiryStack*>& stacks,
                                       const GroupOf& group_of);

 private:
  struct Pending {
    uint64_t told = 0;
    uint64_t expired = 0;
    uint64_t freed = 0;
  };

  std::map<size_t, Pending> pending_;  // by group
};

// Estimates the lifetimes of a stack's blocks that were freed between two looks at a ledger. Times
// are in ticks.

// The lifetime of a freed block, or a bound: `least` is at or above it, `most` at or below it.
struct LiveTimeLimit {
  uint64_t ticks;
  bool exact;
};

struct LiveTime {
  uint64_t frees = 0;
  uint64_t mean = 0;                   // exact when there are frees
  std::optional<LiveTimeLimit> least;  // nothing: unknown
  std::optional<LiveTimeLimit> most;
};

// The ledger keeps the shortest and longest lifetime since the process's last report; each report
// resets them. So a value that both looks see may date from before the first look, and a report may
// remove one from after it. `before`: nullptr if the stack did not exist. `whole`: no report has
// reset them between the looks.
LiveTime live_time(const ledger::LedgerStackState* before, const ledger::LedgerStackState& after,
                   bool whole);

// Adds the freed blocks of another stack. A limit stays exact if the block that has it is known; it
// is unknown where that of either is.
void add(LiveTime& sum, const LiveTime& more);

}  // namespace mtrace::heap
