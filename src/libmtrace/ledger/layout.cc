#include "ledger/layout.h"

#include <cstddef>

#include "ledger/region_table.h"

namespace mtrace::ledger {

using namespace format;

#define MTRACE_SAME(theirs, ours, member) \
  static_assert(offsetof(theirs, member) == offsetof(ours, member))

static_assert(sizeof(LedgerCounterSet) == sizeof(CounterSet));
MTRACE_SAME(LedgerCounterSet, CounterSet, allocated_bytes);
MTRACE_SAME(LedgerCounterSet, CounterSet, allocated_blocks);
MTRACE_SAME(LedgerCounterSet, CounterSet, freed_bytes);
MTRACE_SAME(LedgerCounterSet, CounterSet, freed_blocks);
MTRACE_SAME(LedgerCounterSet, CounterSet, slack);
MTRACE_SAME(LedgerCounterSet, CounterSet, lifetime);
MTRACE_SAME(LedgerCounterSet, CounterSet, mark);
MTRACE_SAME(LedgerCounterSet, CounterSet, shortest);
MTRACE_SAME(LedgerCounterSet, CounterSet, longest);
MTRACE_SAME(LedgerCounterSet, CounterSet, set_aside);
MTRACE_SAME(LedgerCounterSet, CounterSet, temporary);
MTRACE_SAME(LedgerCounterSet, CounterSet, long_lived);
static_assert(kOwnerShift == kLedgerMarkBits);

static_assert(sizeof(LedgerStack) == offsetof(StackRecord, frames));
MTRACE_SAME(LedgerStack, StackRecord, own);
MTRACE_SAME(LedgerStack, StackRecord, hash);
MTRACE_SAME(LedgerStack, StackRecord, ordinal);
MTRACE_SAME(LedgerStack, StackRecord, second);
MTRACE_SAME(LedgerStack, StackRecord, others);
MTRACE_SAME(LedgerStack, StackRecord, retired);
MTRACE_SAME(LedgerStack, StackRecord, own_frames);
MTRACE_SAME(LedgerStack, StackRecord, tail);
MTRACE_SAME(LedgerStack, StackRecord, tails);
MTRACE_SAME(LedgerTail, StackTail, parent);
MTRACE_SAME(LedgerTail, StackTail, frames);
MTRACE_SAME(LedgerStack, StackRecord, call);
MTRACE_SAME(LedgerStack, StackRecord, guessed);
static_assert(kLedgerAlive == kInUse);

static_assert(sizeof(LedgerThread) == sizeof(ThreadSlot) &&
              kLedgerThreads == ThreadSlots::kMost + 1 && kLedgerCalls == kCalls);
MTRACE_SAME(LedgerThread, ThreadSlot, tid);
MTRACE_SAME(LedgerThread, ThreadSlot, live_bytes);
MTRACE_SAME(LedgerThread, ThreadSlot, high);
MTRACE_SAME(LedgerThread, ThreadSlot, most_kept);
MTRACE_SAME(LedgerThread, ThreadSlot, known_sets);
MTRACE_SAME(LedgerThread, ThreadSlot, calls);
MTRACE_SAME(LedgerThread, ThreadSlot, failed_allocations);
MTRACE_SAME(LedgerThread, ThreadSlot, unknown_frees);

static_assert(kArenaUnit == Arena::kUnit && kArenaChunks == Arena::kMaxChunks &&
              kArenaChunk == uint64_t{Arena::kUnit} * Arena::kChunkUnits);
static_assert(kLargeChunk == GrowingArray<uint64_t>::kChunk);
static_assert(sizeof(Totals) == 2 * sizeof(uint64_t));

LedgerRoots Layout::roots(const Ledger& ledger) {
  using Level = BlockHash::Level;
  static_assert(sizeof(LedgerLevel) == sizeof(Level) && kLedgerLevels == BlockHash::kMaxLevels);
  static_assert(offsetof(LedgerLevel, slots) == offsetof(Level, slots_made));
  MTRACE_SAME(LedgerLevel, Level, lines);
  static_assert(sizeof(LedgerSlot) == sizeof(BlockHash::Slot));
  static_assert(kSlotsALine == BlockHash::kLine && kLargeSize == BlockHash::kLarge &&
                kSlotAddressBits == BlockHash::kAddressBits &&
                kSlotStackBits == BlockHash::kStackBits && kSlotSizeBits == BlockHash::kSizeBits);
  const auto at = [](const void* place) { return reinterpret_cast<uint64_t>(place); };
  return {.arena = at(ledger.stacks.arena_.chunks()),
          .stacks = at(ledger.stacks.records_.chunks()),
          .stack_count = at(&ledger.stacks.next_ordinal_),
          .reported = at(ledger.reported.chunks()),
          .reported_peak = at(&ledger.reported_peak),
          .levels = at(ledger.blocks.hash_.levels_),
          .highest_level = at(&ledger.blocks.hash_.highest_),
          .large_sizes = at(ledger.blocks.hash_.large_.chunks()),
          .threads = at(ledger.threads.slots_),
          .threads_used = at(&ledger.threads.used_),
          .threads_asked = at(&ledger.threads.asked_),
          .threads_several = at(&ledger.threads.several_),
          .peak = at(&ledger.peak.height_),
          .peak_when = at(&ledger.peak.when_),
          .lost_stacks = at(&ledger.stacks.lost_stacks_),
          .lost_frames = at(&ledger.stacks.lost_frames_),
          .lost_blocks = at(&ledger.blocks.hash_.lost_blocks_),
          .lost_inflight = at(&ledger.lost_inflight),
          .inherited = at(&ledger.inherited)};
}

uint64_t Layout::shadow(const Ledger& ledger) {
  static_assert(HeapShadow::kSizeShift == kShadowStackBits &&
                HeapShadow::kBirthShift == kShadowStackBits + kShadowSizeBits &&
                HeapShadow::kPlaceShift == kShadowPlaceShift);
  static_assert(sizeof(LedgerShadowPage) == sizeof(HeapShadow::Page) &&
                HeapShadow::Pages::kMaxChunks == kShadowPagesChunks);
  MTRACE_SAME(LedgerShadowPage, HeapShadow::Page, owner);
  MTRACE_SAME(LedgerShadowPage, HeapShadow::Page, chunk);
  return reinterpret_cast<uint64_t>(ledger.blocks.shadow_.pages_.chunks());
}

uint64_t Layout::regions() {
  using Node = RegionTree::Node;
  static_assert(sizeof(LedgerRegion) == sizeof(Node));
  static_assert(offsetof(LedgerRegion, stack) == offsetof(Region, stack));
  MTRACE_SAME(LedgerRegion, Node, left);
  MTRACE_SAME(LedgerRegion, Node, right);
  static_assert(offsetof(LedgerRegionTree, root) == offsetof(RegionTree, root_) &&
                offsetof(LedgerRegionTree, nodes) == offsetof(RegionTree, nodes_) &&
                offsetof(LedgerRegionTree, used) == offsetof(RegionTree, used_));
  return reinterpret_cast<uint64_t>(&g_regions.tree_);
}

}  // namespace mtrace::ledger
