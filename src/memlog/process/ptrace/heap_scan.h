// Looks at the heap of a process, and tells which of its live blocks the process can still reach:
// twice at that of a running one, once at that of one that rests or in a core file.
#pragma once

#include "model/heap/reachability.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_memlog.h"
#include "model/symbols/data_symbol.h"
#include "process/inspect/memory_view.h"
#include "process/ptrace/snapshot.h"
#include "util/prelude.h"
#include "util/text.h"

namespace mtrace::process {

struct HeapScanSettings {
  std::chrono::milliseconds pause{100};  // between the two looks
  bool rests = false;                    // no thread of the process runs: one look tells all
  std::chrono::milliseconds timeout{10000};
  // How long a process that cannot be copied may be stopped at a time; 0: it is not searched.
  std::chrono::milliseconds stop_limit{0};
  unsigned tag_bits = 0;
  bool inner_counts = false;  // heap::Roots
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
  HeapScan(const CoreMemory& core, ledger::LedgerFile& ledger, const HeapScanSettings& settings);

  // Ends the copies of the process, which only the constructor reads.
  void close() { snapshots_.reset(); }

  // The blocks that lived through the last look, by address.
  const std::vector<heap::HeapBlock>& blocks() const { return blocks_; }
  // Of a block; what only one look found lost, or could find, counts as reachable.
  heap::Reach reach(size_t block) const { return found_.of[block]; }
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
  const MemoryView::Missing& missing() const { return missing_; }
  // Why blocks from before tracing began count as roots; empty: there are none.
  const std::string& unknown() const { return unknown_; }

 private:
  using Blocks = std::vector<heap::HeapBlock>;
  void look();
  void search(const Snapshot& snapshot, const MemoryView& memory, const Blocks& others,
              const std::function<void()>& check_limit);
  void keep_what_both_found(const Blocks& before, const std::vector<heap::Reach>& reached);
  void doubt_what_is_lost();
  Blocks read_blocks();
  void match_blocks(const std::function<void(const heap::HeapBlock&)>& rest);
  std::vector<Range> own_ranges(const MemoryView& memory) const;
  void name_root(RetainerPath& path, uint64_t via, size_t block) const;
  const Mapping* first_of(const std::string& file) const;
  bool name_data(RetainerPath& path, const std::string& file, const symbols::DataPlace& via,
                 size_t block) const;
  bool name_thread_local(RetainerPath& path, uint64_t via, size_t block) const;
  size_t straight_steps(const RetainerPath& path, uint64_t via, size_t block) const;

  pid_t pid_ = 0;
  ledger::LedgerFile& ledger_;
  HeapScanSettings settings_;
  std::optional<Snapshots> snapshots_;  // of a running process
  std::function<int(const Mapping&)> open_file_;
  std::function<uint64_t(uint64_t address)> read_word_;  // as it is now; 0: it cannot be read
  std::string unknown_;
  bool whole_ = true;  // the ledger's blocks could all be read
  MemoryView::Missing missing_;
  std::vector<heap::HeapBlock> blocks_;
  std::optional<heap::BlockIndex> index_;
  heap::Reachability found_;
  std::vector<bool> suppressed_;  // by block; empty: none is
  std::vector<SnapshotThread> threads_;
  std::vector<Mapping> map_;
  std::chrono::microseconds stopped_[2] = {};
  mutable std::chrono::nanoseconds types_took_{0};
  int looks_ = 0;
};

// What a search found, by the stacks that allocated it.

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

inline size_t reach_index(heap::Reach reach) { return static_cast<size_t>(reach); }

class Findings {
 public:
  // Leaves out blocks of stacks that the ledger does not know.
  Findings(const HeapScan& scan, const ledger::KnownLedger& known);

  const ReachSum& total(heap::Reach reach) const { return totals_[reach_index(reach)]; }
  const ReachSum& suppressed() const { return suppressed_; }  // in no total
  const StackReach& of(uint32_t stack) const { return stacks_.at(stack); }
  // The stacks with such blocks, those with the most bytes first.
  const std::vector<uint32_t>& with(heap::Reach reach) const { return sorted_[reach_index(reach)]; }

 private:
  void sort(heap::Reach reach);

  std::array<ReachSum, 4> totals_;
  ReachSum suppressed_;
  std::map<uint32_t, StackReach> stacks_;
  std::array<std::vector<uint32_t>, 4> sorted_;  // by Reach
};

// An address lies in no live block.
struct NoLiveBlock : std::runtime_error {
  NoLiveBlock(const std::string& text, const format::LedgerHeader& header)
      : std::runtime_error(text),
        pid(static_cast<pid_t>(header.pid)),
        directory(util::array_text(header.directory)) {}
  pid_t pid;
  std::string directory;  // of its reports
};

}  // namespace mtrace::process
