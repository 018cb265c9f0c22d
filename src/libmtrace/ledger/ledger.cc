#include "ledger/ledger.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/machine.h"
#include "format/memlog.h"
#include "ledger/region_table.h"
#include "ledger/resource_table.h"

namespace mtrace::ledger {

constinit Ledger g_ledger = {};
uint32_t g_births = 0;

namespace {

// Once a quarter of what is live now is freed, all memory has been looked at for what is empty.
void watch_for_fall(uint64_t steps) {
  constexpr uint64_t kLeast = 64 * 1024;  // bytes
  const uint64_t live = g_ledger.threads.totals().live_bytes;
  const uint64_t fall = std::max(live / 4 / steps, kLeast);
  store(g_fall_watch.floor, live > fall ? live - fall : 0);
}
void look_after_fall() { g_ledger.blocks.give_back_empty(true); }
uint64_t live_blocks() { return g_ledger.threads.totals().live_blocks; }
bool all_were_outside(bool inside) { return g_ledger.threads.all_were_outside(inside); }

// Resets the lifetimes of a set, and its mark where the child's peak could equal the marked one.
void begin_anew(CounterSet& set, uint64_t height) {
  if (set.shortest != 0) set.shortest = 0;
  if (set.longest != 0) set.longest = 0;
  // The child's peak starts from the inherited bytes and may reach the height of one of the
  // parent's peaks, whose marks must not count as its own.
  if ((set.mark & kHeightBits) < height) return;
  set.mark = height | (set.mark & ~kHeightBits);
  if ((set.set_aside & format::kLedgerMappingForm) == 0) {
    set.set_aside = set.allocated_bytes - set.freed_bytes;
  }
}

}  // namespace

// A vanished thread may have changed a block and not its counters, or the reverse. The blocks
// decide: the counters of each stack are computed from its blocks, resources and regions. Slack
// stays: a block may have been freed past the hooks, so its usable size must not be queried before
// the program frees it; and a vanished thread may hold the allocator's lock.
void Ledger::count_anew() {
  stacks.for_each([&](uint32_t, StackRecord& stack) {
    const Counters before = stacks.read(stack);
    uint64_t slack = 0;
    stacks.each_set(stack, [&](CounterSet& set) {
      slack += set.slack;
      clear(set);
    });
    stack.own.freed_bytes = stack.own.allocated_bytes = before.freed_bytes;
    stack.own.freed_blocks = stack.own.allocated_blocks = before.freed_blocks;
    stack.own.temporary = before.temporary;
    stack.own.long_lived = before.freed_blocks - before.short_lived;
    stack.own.lifetime = before.lifetime;
    stack.own.slack = slack;
  });
  blocks.repair([&](uintptr_t address, const Block& block) {
    CounterSet& own = stacks.record(block.stack).own;
    const Weight weight = weigh(address, block);
    own.allocated_bytes += weight.bytes;
    own.allocated_blocks += weight.blocks;
  });
  g_resources.for_each([&](const Resource& resource) {
    count_recorded(stacks.record(resource.stack), resource.size);
  });
  g_regions.for_each([&](const Region& region) {
    count_recorded(stacks.record(region.stack), region.end - region.start);
  });
}

Totals Ledger::live_heap() const {
  Totals live = {};
  stacks.for_each([&](uint32_t, StackRecord& stack) {
    if (stack.kind != 0) return;
    const Counters now = stacks.read(stack);
    live.bytes += live_bytes(now);
    live.blocks += live_blocks(now);
  });
  return live;
}

void Ledger::use_shadow(HeapShadow::Granules granules) {
  g_fall_watch = {0, look_after_fall};
  blocks.use_shadow(granules, {live_blocks, all_were_outside, watch_for_fall});
}

void Ledger::rebase_after_fork(uint32_t survivor, uint32_t tid) {
  const uint32_t interrupted = threads.keep_only(survivor, tid);
  blocks.after_fork();
  inherited = live_heap();
  if (g_regions.after_fork() + interrupted != 0) {
    const uint64_t counted = inherited.blocks;
    count_anew();
    inherited = live_heap();
    lost_inflight += interrupted;
    // A block whose realloc was under way in another thread is in no table.
    if (counted > inherited.blocks) lost_inflight += counted - inherited.blocks;
  }
  threads.restart(survivor, inherited.bytes, inherited.blocks);
  peak.restart(inherited.bytes, ticks_now());
  reported_peak = 0;
  stacks.for_each([&](uint32_t, StackRecord& stack) {
    stacks.each_set(stack, [&](CounterSet& set) { begin_anew(set, inherited.bytes); });
    const Counters now = stacks.read(stack);
    Counters* base = reported.find(stack.ordinal);
    if (base == nullptr && now.allocated_blocks != 0) {
      base = reported.find_or_create(stack.ordinal);
    }
    if (base != nullptr && *base != now) *base = now;
  });
}

void Ledger::forget_all(uint32_t child) {
  blocks.forget_all();
  stacks.for_each([&](uint32_t, StackRecord& stack) {
    if (stack.kind != 0) return;
    stacks.each_set(stack, [](CounterSet& set) { clear(set); });
    Counters* base = reported.find(stack.ordinal);
    if (base != nullptr) *base = {};
  });
  threads.forget_counts(child);
  peak.restart(0, ticks_now());
  inherited = {};
  reported_peak = lost_inflight = lost_frees = 0;
}

void Ledger::begin_after_fork(uint32_t survivor, uint32_t tid) {
  ++g_births;
  g_resources.clear();
  g_regions.clear();
  threads.begin_with(survivor, tid);
  threads.restart(survivor, 0, 0);
  peak.restart(0, ticks_now());
}

using namespace format;

#define MTRACE_SAME(theirs, ours, member) \
  static_assert(offsetof(theirs, member) == offsetof(ours, member))

static_assert(kArenaUnit == Arena::kUnit && kArenaChunks == Arena::kMaxChunks &&
              kArenaChunk == uint64_t{Arena::kUnit} * Arena::kChunkUnits);
static_assert(kLargeChunk == GrowingArray<uint64_t>::kChunk);
static_assert(sizeof(Totals) == 2 * sizeof(uint64_t));

LedgerRoots Layout::roots(const Ledger& ledger) {
  using Level = BlockHash::Level;
  static_assert(sizeof(LedgerLevel) == sizeof(Level));
  static_assert(offsetof(LedgerLevel, slots) == offsetof(Level, slots_made));
  MTRACE_SAME(LedgerLevel, Level, lines);
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
  static_assert(sizeof(LedgerShadowPage) == sizeof(HeapShadow::Page) &&
                HeapShadow::Pages::kMaxChunks == kShadowPagesChunks);
  MTRACE_SAME(LedgerShadowPage, HeapShadow::Page, owner);
  MTRACE_SAME(LedgerShadowPage, HeapShadow::Page, chunk);
  return reinterpret_cast<uint64_t>(ledger.blocks.shadow_.pages_.chunks());
}

uint64_t Layout::regions() {
  using Shown = decltype(RegionTable::shown_);
  MTRACE_SAME(LedgerRegionTable, Shown, changes);
  MTRACE_SAME(LedgerRegionTable, Shown, chunks);
  MTRACE_SAME(LedgerRegionTable, Shown, store);
  return reinterpret_cast<uint64_t>(&g_regions.shown_);
}

MTRACE_HOT constinit uint64_t g_sample_mean = 0;

namespace {

using Wide = unsigned __int128;

constexpr unsigned kPoint = 32;  // binary places of a weight

uint64_t high_product(uint64_t a, uint64_t b) { return static_cast<uint64_t>(Wide{a} * b >> 64); }

// 1 / p in units of 2^-32, rounded down.
uint64_t inverse_chance(uint64_t size, uint64_t mean) {
  return machine::divide(uint64_t{1} << kPoint, chance(size, mean));
}

}  // namespace

// p(x) = 1 - exp(-x) by its series at x / 2^n < 1/16, then n times p(2x) = p(x) (2 - p(x)), which
// keeps the relative error small.
uint64_t chance(uint64_t size, uint64_t mean) {
  constexpr int kSmall = 4;          // the series begins below 2^-4
  constexpr uint64_t kCertain = 44;  // exp(-44) is below 2^-63
  const uint64_t length = size + 1;
  if (length / mean >= kCertain) return UINT64_MAX;
  const int ratio = std::bit_width(length) - std::bit_width(mean) + 1;  // x is below 2^ratio
  const int doublings = ratio + kSmall > 0 ? ratio + kSmall : 0;
  const uint64_t x = machine::divide(length, mean << doublings);
  uint64_t factor = UINT64_MAX;  // x (1 - x/2 (1 - x/3 (1 - ...)))
  for (uint64_t n = 12; n > 1; --n) factor = UINT64_MAX - high_product(x / n, factor);
  uint64_t p = high_product(x, factor);
  for (int i = 0; i < doublings; ++i) p = 2 * p - high_product(p, p);
  return p;
}

Weight weigh_sample(uint64_t mean, uintptr_t address, const Block& block) {
  const uint64_t each = inverse_chance(block.size, mean);
  // Two pseudo-random numbers below 1: they round a weight up with the probability of its fraction.
  const uint64_t random = format::mix64(address * 0x9e3779b97f4a7c15u + block.birth);
  const uint64_t low = random & ((uint64_t{1} << kPoint) - 1);
  const uint64_t high = random >> kPoint;
  return {static_cast<uint64_t>((Wide{each} * block.size + high) >> kPoint),
          (each + low) >> kPoint};
}

uint64_t Random::operator()() {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  return format::mix64(fetch_add(state_, kStep) + kStep);
}

// J. von Neumann, Various techniques used in connection with random digits, 1951 (Knuth, The Art of
// Computer Programming 2, 3.4.1): draw numbers between 0 and 1 as long as each is below the one
// before. An odd number of them comes with the probability exp(-first), and then the first is the
// fraction; an even number raises the whole part by one.
uint64_t Random::exponential(uint64_t mean) {
  for (uint64_t whole = 0;; ++whole) {
    const uint64_t first = (*this)();
    bool odd = true;
    uint64_t last = first;
    for (uint64_t next = (*this)(); next < last; next = (*this)()) {
      last = next;
      odd = !odd;
    }
    if (odd) return whole * mean + high_product(first, mean);
  }
}

}  // namespace mtrace::ledger
