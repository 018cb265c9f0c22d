// Looks twice at the heap of a running process, and tells which of its live blocks the process can
// still reach.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/reachability.h"
#include "live/ledger_file.h"
#include "live/ledger_state.h"
#include "target/snapshot.h"

namespace mtrace::cli {

struct HeapScanSettings {
  std::chrono::milliseconds pause{100};  // between the two looks
  std::chrono::milliseconds timeout{10000};
  // How long a process that cannot be copied may be stopped at a time; 0: it is not searched.
  std::chrono::milliseconds stop_limit{0};
  unsigned tag_bits = 0;
  bool inner_counts = false;  // analyze::Roots
};

// A root as people know it, and the blocks between it and a block: the first is the root's.
struct RetainerPath {
  std::string root;
  struct Step {
    size_t block;     // index in HeapScan::blocks
    uint64_t offset;  // in it, of the pointer to the next
  };
  std::vector<Step> steps;  // without the block itself
  bool cut = false;         // there are more
};

class HeapScan {
 public:
  // Throws AttachError, LedgerError.
  HeapScan(pid_t pid, live::LedgerFile& ledger, const HeapScanSettings& settings);

  // The blocks that lived through the second look, by address.
  const std::vector<analyze::HeapBlock>& blocks() const { return blocks_; }
  // Of a block; what only one look found lost, or could find, counts as reachable.
  analyze::Reach reach(size_t block) const { return found_.of[block]; }
  size_t owner(size_t block) const { return found_.owner[block]; }
  // Does not call blocks of these stacks lost, nor what only they point to.
  void suppress(const std::function<bool(uint32_t stack)>& is_suppressed);
  // Whether the block would be lost without suppress(); its reach() is then kReachable.
  bool suppressed(size_t block) const { return !suppressed_.empty() && suppressed_[block]; }
  // How the second look came to a block that is not lost.
  RetainerPath path(size_t block) const;

  std::chrono::microseconds stopped(int look) const { return stopped_[look]; }
  uint64_t scanned() const { return found_.scanned; }  // bytes, by the second look
  // Why blocks from before tracing began count as roots; empty: there are none.
  const std::string& unknown() const { return unknown_; }

 private:
  void look();
  std::vector<analyze::HeapBlock> read_blocks(size_t expected);
  std::vector<uint64_t> ignored_blocks(const live::LedgerState& state) const;
  std::string root_name(uint64_t via) const;

  pid_t pid_;
  live::LedgerFile& ledger_;
  HeapScanSettings settings_;
  target::Snapshots snapshots_;
  std::string unknown_;
  std::vector<analyze::HeapBlock> blocks_;
  std::optional<analyze::BlockIndex> index_;
  analyze::Reachability found_;
  std::vector<bool> suppressed_;  // by block; empty: none is
  std::vector<target::SnapshotThread> threads_;
  std::vector<target::Mapping> map_;
  std::chrono::microseconds stopped_[2] = {};
  int looks_ = 0;
};

}  // namespace mtrace::cli
