// Looks at the heap of a process, and tells which of its live blocks the process can still reach:
// twice at that of a running one, once at that of one that rests or in a core file.
#pragma once

#include <sys/types.h>

#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_state.h"
#include "model/profile/model.h"
#include "model/symbols/data_symbol.h"
#include "process/inspect/mappings.h"
#include "process/inspect/memory_view.h"
#include "process/inspect/target_objects.h"
#include "process/ptrace/snapshot.h"
#include "process/run/launch.h"
#include "surface/cli/arguments.h"
#include "util/prelude.h"
#include "util/text.h"
#include "view/analyze/filter.h"
#include "view/heap/heap_pages.h"
#include "view/heap/reachability.h"
#include "view/text/style.h"

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

// What is in the address space of a process that has a ledger: its mappings, what malloc has of
// them, and whose blocks keep heap pages in memory.

struct SpaceRegion {
  process::Mapping mapping;
  process::RegionKind kind = process::RegionKind::kAnonymous;
  uint64_t live_bytes = 0;  // requested, of the blocks that begin in it
  uint64_t live_blocks = 0;
  uint64_t taken = 0;               // bytes that these blocks take, with what malloc adds
  std::set<uint32_t> mappers = {};  // indexes of the stacks that mapped it; empty: not known

  uint64_t size() const { return mapping.end - mapping.begin; }
  bool is_heap() const {
    return kind == process::RegionKind::kHeap || kind == process::RegionKind::kArena;
  }
  // Bytes of a heap that no live block takes.
  uint64_t free() const { return is_heap() && size() > taken ? size() - taken : 0; }
};

// The last block of a heap: what is behind it can be trimmed, what is before it cannot.
struct HeapTop {
  size_t region;  // index in AddressSpace::regions()
  analyze::HeapBlock block;
  uint64_t behind = 0;  // resident bytes, in whole pages
  uint64_t gain = 0;    // more bytes that could be trimmed if the block were freed
};

// malloc's heaps for threads. What is free in one arena serves no thread of another.
struct ThreadArenas {
  uint64_t arenas = 0;
  uint64_t free = 0;  // resident pages without a live block
};

// Why the ledger may lack live blocks; empty: it has all. `whole`: its blocks could all be read.
std::string unknown_blocks(const ledger::LedgerFile& ledger, const ledger::LedgerState& state,
                           bool whole);

class AddressSpace {
 public:
  // Throws std::runtime_error when the process has ended or must not be looked at, LedgerError.
  // Reads one after the other while the process runs: what it does meanwhile may show in part.
  AddressSpace(pid_t pid, ledger::LedgerFile& ledger);

  const std::vector<SpaceRegion>& regions() const { return regions_; }  // by address
  const std::vector<HeapTop>& tops() const { return tops_; }            // largest `gain` first
  const analyze::PinnedPages& pinned() const { return pinned_; }
  const ThreadArenas& arenas() const { return arenas_; }
  // Whether the heaps are another allocator's than glibc's: malloc_trim(3) does nothing for them,
  // and they are not trimmed from their ends.
  bool other_allocator() const { return other_allocator_; }
  const std::vector<analyze::HeapBlock>& blocks() const { return blocks_; }  // by address
  bool has_all_blocks() const { return has_all_blocks_; }                    // that the ledger has
  // By address. Of a heap that is mostly reserved, each part with resident pages.
  const std::vector<analyze::HeapPages>& heaps() const { return heaps_; }
  // The parts of the blocks that lie in these, by address.
  const std::vector<analyze::HeapBlock>& pieces() const {
    return pieces_.empty() ? blocks_ : pieces_;
  }

 private:
  void read_blocks(ledger::LedgerFile& ledger);
  void cut_mappings(const std::vector<process::OwnMapping>& own, std::vector<process::Mapping>& map,
                    process::PageMap& pages) const;
  void assign_blocks();
  void look_at_pages(pid_t pid, process::PageMap& pages);
  void look_at_arenas(process::PageMap& pages);
  void look_for_chunks(process::PageMap& pages);
  void cut_blocks();
  void find_top(size_t region, const std::vector<process::Range>& resident);

  std::vector<SpaceRegion> regions_;
  std::vector<analyze::HeapBlock> blocks_;  // by address
  bool has_all_blocks_ = true;
  std::vector<analyze::HeapPages> heaps_;
  std::vector<size_t> heap_regions_;        // of each, index in regions_
  std::vector<analyze::HeapBlock> pieces_;  // empty: all heaps are whole, and so are the blocks
  std::vector<HeapTop> tops_;
  analyze::PinnedPages pinned_;
  ThreadArenas arenas_;
  bool other_allocator_ = false;
};

// What a search of the heap found, by the stacks that allocated it.

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

// Looks for lost blocks in the processes of a run: before their exit takes away what holds them,
// after it if that is wanted, and when they ask for a leak check.

inline constexpr char kExitLookHelp[] =
    R"(Look for lost blocks when the program exits, before exit handlers and destructors run, as
    memlog unreachable does in a running process. The exit waits for it. The suppressions that
    LSAN_OPTIONS names count.)";
inline constexpr Option kAfterExitOption = {
    "--after-exit",
    "",
    "",
    R"(With --unreachable: look once more when exit handlers and destructors have run.)",
    "",
    "--unreachable"};

// What was found in one process.
struct ExitLook {
  std::string name;
  pid_t pid = 0;
  ledger::HoldPoint point = ledger::HoldPoint::kExit;
  std::string trouble;  // why the process was not looked at, as in AttachError; empty: it was
  std::string unknown;  // HeapScan::unknown()
  size_t blocks = 0;    // looked at
  std::array<ReachSum, 4> sums;       // of these, by Reach
  analyze::StacksLeftOut suppressed;  // lost in any way
  profile::Memlog lost;               // what is definitely lost, as a report without names
};

// Of each process the look that tells what it leaves behind: the last one at its end, or its last
// leak check if that stood for it.
std::vector<ExitLook> last_looks(std::vector<ExitLook> found);

// Returns a line on what is indirectly and possibly lost; empty: nothing is.
std::string other_losses_text(const std::vector<ExitLook>& looks, const text::Style& style);

struct ExitLookSettings {
  std::string ledgers;      // their directory; empty: nothing is looked at
  bool after_exit = false;  // also
  std::vector<analyze::StackPattern> suppressions;
};

// Reads --after-exit, --suppressions and LSAN_OPTIONS. `program`: its path. Throws UsageError, and
// FormatError for a suppressions file.
ExitLookSettings exit_look_settings(const Arguments& arguments, const std::string& ledgers,
                                    const std::string& program);

class ExitLooks {
 public:
  explicit ExitLooks(ExitLookSettings settings)
      : settings_(std::move(settings)), holds_(settings_.ledgers, settings_.after_exit) {}

  // For launch(): serves the processes that wait.
  process::Tick tick();
  std::vector<ExitLook>& found() { return found_; }

 private:
  void look(pid_t pid, ledger::LedgerFile& ledger, ledger::HoldPoint point);
  void search(ExitLook& found, ledger::LedgerFile& ledger) const;

  ExitLookSettings settings_;
  process::ExitHolds holds_;
  std::vector<ExitLook> found_;
};

}  // namespace mtrace::cli
