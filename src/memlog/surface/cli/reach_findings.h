// What a search of the heap found, by the stacks that allocated it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/ledger/ledger_state.h"
#include "surface/cli/heap_scan.h"
#include "util/text.h"

namespace mtrace::cli {

using analyze::Reach;

struct ReachSum {
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  void add(uint64_t size) {
    bytes += size;
    ++blocks;
  }
};

// What one stack has allocated, by Reach.
struct StackReach {
  std::array<ReachSum, 4> sums;
  ReachSum owned;  // indirectly lost blocks that hang on its definitely lost ones
  // Birth of the oldest block in ticks.
  std::array<uint64_t, 4> oldest_of{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
  size_t largest_reachable = SIZE_MAX;  // block
};

inline size_t reach_index(Reach reach) { return static_cast<size_t>(reach); }

// An address lies in no live block.
struct NoLiveBlock : std::runtime_error {
  NoLiveBlock(const std::string& text, const format::LedgerHeader& header)
      : std::runtime_error(text),
        pid(static_cast<pid_t>(header.pid)),
        directory(util::array_text(header.directory)) {}
  pid_t pid;
  std::string directory;  // of its reports
};

class Findings {
 public:
  Findings(const HeapScan& scan, const ledger::KnownLedger& known) {
    const auto& blocks = scan.blocks();
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (known.find(blocks[i].stack) == nullptr) continue;
      if (scan.suppressed(i)) {
        suppressed_.add(blocks[i].size);
        continue;
      }
      const size_t reach = reach_index(scan.reach(i));
      totals_[reach].add(blocks[i].size);
      StackReach& stack = stacks_[blocks[i].stack];
      stack.sums[reach].add(blocks[i].size);
      stack.oldest_of[reach] =
          std::min(stack.oldest_of[reach], ledger::unpack_ticks(blocks[i].birth));
      if (scan.reach(i) == Reach::kIndirect) {
        stacks_[blocks[scan.owner(i)].stack].owned.add(blocks[i].size);
      }
      if (scan.reach(i) != Reach::kReachable) continue;
      if (stack.largest_reachable == SIZE_MAX ||
          blocks[i].size > blocks[stack.largest_reachable].size) {
        stack.largest_reachable = i;
      }
    }
    for (size_t i = 0; i < sorted_.size(); ++i) sort(static_cast<Reach>(i));
  }

  const ReachSum& total(Reach reach) const { return totals_[reach_index(reach)]; }
  const ReachSum& suppressed() const { return suppressed_; }  // in no total
  const StackReach& of(uint32_t stack) const { return stacks_.at(stack); }
  // The stacks with such blocks, those with the most bytes first.
  const std::vector<uint32_t>& with(Reach reach) const { return sorted_[reach_index(reach)]; }

 private:
  void sort(Reach reach) {
    std::vector<uint32_t>& found = sorted_[reach_index(reach)];
    for (const auto& [stack, sums] : stacks_) {
      if (sums.sums[reach_index(reach)].blocks != 0) found.push_back(stack);
    }
    const auto weight = [&](uint32_t stack) {
      const StackReach& sums = stacks_.at(stack);
      const uint64_t owned = reach == Reach::kDefinite ? sums.owned.bytes : 0;
      return sums.sums[reach_index(reach)].bytes + owned;
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](uint32_t a, uint32_t b) { return weight(a) > weight(b); });
  }

  std::array<ReachSum, 4> totals_;
  ReachSum suppressed_;
  std::map<uint32_t, StackReach> stacks_;
  std::array<std::vector<uint32_t>, 4> sorted_;  // by Reach
};

}  // namespace mtrace::cli
