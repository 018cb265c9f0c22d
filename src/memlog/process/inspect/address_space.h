// What is in the address space of a process that has a ledger: its mappings, what malloc has of
// them, and whose blocks keep heap pages in memory.
#pragma once

#include "model/heap/heap_pages.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_state.h"
#include "process/inspect/mappings.h"
#include "process/inspect/memory_view.h"
#include "process/inspect/target_objects.h"
#include "util/prelude.h"

namespace mtrace::process {

struct SpaceRegion {
  Mapping mapping;
  RegionKind kind = RegionKind::kAnonymous;
  uint64_t live_bytes = 0;  // requested, of the blocks that begin in it
  uint64_t live_blocks = 0;
  uint64_t taken = 0;               // bytes that these blocks take, with what malloc adds
  std::set<uint32_t> mappers = {};  // indexes of the stacks that mapped it; empty: not known

  uint64_t size() const { return mapping.end - mapping.begin; }
  bool is_heap() const { return kind == RegionKind::kHeap || kind == RegionKind::kArena; }
  // Bytes of a heap that no live block takes.
  uint64_t free() const { return is_heap() && size() > taken ? size() - taken : 0; }
};

// The last block of a heap: what is behind it can be trimmed, what is before it cannot.
struct HeapTop {
  size_t region;  // index in AddressSpace::regions()
  heap::HeapBlock block;
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
  const heap::PinnedPages& pinned() const { return pinned_; }
  const ThreadArenas& arenas() const { return arenas_; }
  // Whether the heaps are another allocator's than glibc's: malloc_trim(3) does nothing for them,
  // and they are not trimmed from their ends.
  bool other_allocator() const { return other_allocator_; }
  const std::vector<heap::HeapBlock>& blocks() const { return blocks_; }  // by address
  bool has_all_blocks() const { return has_all_blocks_; }                 // that the ledger has
  // By address. Of a heap that is mostly reserved, each part with resident pages.
  const std::vector<heap::HeapPages>& heaps() const { return heaps_; }
  // The parts of the blocks that lie in these, by address.
  const std::vector<heap::HeapBlock>& pieces() const { return pieces_.empty() ? blocks_ : pieces_; }

 private:
  void read_blocks(ledger::LedgerFile& ledger);
  void cut_mappings(const std::vector<OwnMapping>& own, std::vector<Mapping>& map,
                    PageMap& pages) const;
  void assign_blocks();
  void look_at_pages(pid_t pid, PageMap& pages);
  void look_at_arenas(PageMap& pages);
  void look_for_chunks(PageMap& pages);
  void cut_blocks();
  void find_top(size_t region, const std::vector<Range>& resident);

  std::vector<SpaceRegion> regions_;
  std::vector<heap::HeapBlock> blocks_;  // by address
  bool has_all_blocks_ = true;
  std::vector<heap::HeapPages> heaps_;
  std::vector<size_t> heap_regions_;     // of each, index in regions_
  std::vector<heap::HeapBlock> pieces_;  // empty: all heaps are whole, and so are the blocks
  std::vector<HeapTop> tops_;
  heap::PinnedPages pinned_;
  ThreadArenas arenas_;
  bool other_allocator_ = false;
};

}  // namespace mtrace::process
