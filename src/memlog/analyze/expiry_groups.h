// Adds up expired blocks by group: the stacks that one function is responsible for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "analyze/expiry.h"

namespace mtrace::analyze {

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

}  // namespace mtrace::analyze
