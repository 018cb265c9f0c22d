// Looks at the heap of a process, and tells which of its live blocks the process can still reach:
// twice at that of a running one, once at that of one that rests or in a core file.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_state.h"
#include "model/symbols/data_symbol.h"
#include "process/inspect/core_memory.h"
#include "process/ptrace/snapshot.h"
#include "view/heap/reachability.h"

namespace mtrace::cli {

struct HeapScanSettings {
  std::chrono::milliseconds pause{100};  // between the two looks
  bool rests = false;                    // no thread of the process runs: one look tells all
  std::chrono::milliseconds timeout{10000};
  // How long a process that cannot be copied may be stopped at a time; 0: it is not searched.
  std::chrono::milliseconds stop_limit{0};
  unsigned tag_bits = 0;
  bool inner_counts = false;  // analyze::Roots
  symbols::SearchPath where;  // of symbols and debugging information
};

// A root as people know it, and the first three blocks between it and a block.
// Types are those of the program's debugging information, as far as it tells.
struct RetainerPath {
  std::string root;
  std::string root_source;  // "app.cc:41", where the variable is declared; empty: not known
  std::string root_type;    // empty: not known, as below
  struct Step {
    size_t block;      // index in HeapScan::blocks
    uint64_t offset;   // in it, of the pointer to the next
    std::string type;  // of the block
  };
  std::vector<Step> steps;  // without the block itself
  bool cut = false;         // there are more than three
  std::string type;         // of the block itself
};

class HeapScan {
 public:
  // Throws AttachError, LedgerError.
  HeapScan(pid_t pid, ledger::LedgerFile& ledger, const HeapScanSettings& settings);
  // Of a core file, which must live as long. Throws CoreError, LedgerError.
  HeapScan(const process::CoreMemory& core, ledger::LedgerFile& ledger,
           const HeapScanSettings& settings);

  // Ends the copies of the process, which only the constructor reads.
  void close() { snapshots_.reset(); }

  // The blocks that lived through the last look, by address.
  const std::vector<analyze::HeapBlock>& blocks() const { return blocks_; }
  // Of a block; what only one look found lost, or could find, counts as reachable.
  analyze::Reach reach(size_t block) const { return found_.of[block]; }
  size_t owner(size_t block) const { return found_.owner(static_cast<uint32_t>(block)); }
  // Does not call blocks of these stacks lost, nor what only they point to.
  void suppress(const std::function<bool(uint32_t stack)>& is_suppressed);
  // Whether the block would be lost without suppress(); its reach() is then kReachable.
  bool suppressed(size_t block) const { return !suppressed_.empty() && suppressed_[block]; }
  // How the last look came to a block that is not lost.
  RetainerPath path(size_t block) const;

  std::chrono::microseconds stopped(int look) const { return stopped_[look]; }
  uint64_t scanned() const { return found_.scanned; }  // bytes, by the last look
  // What may hold pointers and was not looked at by the last look: nothing is called lost for
  // certain then.
  const process::MemoryView::Missing& missing() const { return missing_; }
  // Why blocks from before tracing began count as roots; empty: there are none.
  const std::string& unknown() const { return unknown_; }

 private:
  using Blocks = std::vector<analyze::HeapBlock>;
  void look();
  void search(const process::Snapshot& snapshot, const process::MemoryView& memory,
              const Blocks& others, const std::function<void()>& check_limit);
  void keep_what_both_found(const Blocks& before, const std::vector<analyze::Reach>& reached);
  void doubt_what_is_lost();
  Blocks read_blocks();
  void match_blocks(const std::function<void(const analyze::HeapBlock&)>& rest);
  std::vector<process::Range> own_ranges(const process::MemoryView& memory) const;
  void name_root(RetainerPath& path, uint64_t via, size_t block) const;
  const process::Mapping* first_of(const std::string& file) const;
  bool name_data(RetainerPath& path, const std::string& file, const symbols::DataPlace& via,
                 size_t block) const;
  bool name_thread_local(RetainerPath& path, uint64_t via, size_t block) const;
  size_t straight_steps(const RetainerPath& path, uint64_t via, size_t block) const;

  pid_t pid_ = 0;
  ledger::LedgerFile& ledger_;
  HeapScanSettings settings_;
  std::optional<process::Snapshots> snapshots_;  // of a running process
  std::function<int(const process::Mapping&)> open_file_;
  std::function<uint64_t(uint64_t address)> read_word_;  // as it is now; 0: it cannot be read
  std::string unknown_;
  bool whole_ = true;  // the ledger's blocks could all be read
  process::MemoryView::Missing missing_;
  std::vector<analyze::HeapBlock> blocks_;
  std::optional<analyze::BlockIndex> index_;
  analyze::Reachability found_;
  std::vector<bool> suppressed_;  // by block; empty: none is
  std::vector<process::SnapshotThread> threads_;
  std::vector<process::Mapping> map_;
  std::chrono::microseconds stopped_[2] = {};
  mutable std::chrono::nanoseconds types_took_{0};
  int looks_ = 0;
};

}  // namespace mtrace::cli
