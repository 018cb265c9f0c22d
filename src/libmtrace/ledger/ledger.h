// All tables of this process. One static object, zero until init(); its memory is never given back,
// because frees arrive to the very end. It fills whole pages, so that a file can be mapped in its
// place (base/table_file.h).
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/machine.h"
#include "base/table_memory.h"
#include "format/ledger.h"
#include "ledger/block.h"
#include "ledger/block_table.h"
#include "ledger/ledger.h"
#include "ledger/peak.h"
#include "ledger/stack_table.h"
#include "ledger/thread_slots.h"

namespace mtrace::ledger {

struct Totals {
  uint64_t bytes;
  uint64_t blocks;
};

struct alignas(machine::kMostPage) Ledger {
  StackTable stacks;
  BlockTable blocks;
  Peak peak;  // shares a page with the end of `blocks` and with the first thread slots
  ThreadSlots threads;
  // Counters of each stack, by ordinal, at the last report: the base of the next differences. Only
  // the thread that reports writes them.
  GrowingArray<Counters, format::kReportedChunk> reported;
  Totals inherited;        // live at the fork; zero in a process that exec'ed
  uint64_t reported_peak;  // bytes: the peak in the last report
  // Operations that threads which vanished in a fork had begun, and blocks they had in a realloc.
  uint64_t lost_inflight;
  uint64_t lost_frees;  // of blocks whose address came back without a free
  // Notes of the program (report/notes.cc), here so that a ledger file keeps them after a kill.
  format::LedgerNote notes[format::kLedgerNotes];

  bool init(StackTable::CameBack came_back) { return stacks.init(came_back) && blocks.init(); }

  // See BlockTable; for g_ledger.
  void use_shadow(HeapShadow::Granules granules);

  // In the single-threaded child of a fork: makes the tables consistent and the present state the
  // base of the next report. `survivor` is the thread slot of the only thread, `tid` its new id.
  void rebase_after_fork(uint32_t survivor, uint32_t tid);
  // Forgets all blocks and zeroes the heap's counters, after the program has run untraced. No other
  // thread may be inside the library. `child`: see ThreadSlots::forget_counts().
  void forget_all(uint32_t child);

  // For a fork's child whose tables were its parent's file: starts the empty tables of init().
  void begin_after_fork(uint32_t survivor, uint32_t tid);

 private:
  Totals live_heap() const;  // by the counters
  void count_anew();
};

[[gnu::visibility("hidden")]] extern Ledger g_ledger;

// Grows when this process starts on new tables, at a fork or an attach; a child inherits it. An
// operation that began in the old tables must not end in the new ones.
[[gnu::visibility("hidden")]] extern uint32_t g_births;

// ---- Addresses of the tables for readers in other processes: the roots in a ledger file's header.

struct Layout {
  static format::LedgerRoots roots(const Ledger& ledger);
  static uint64_t shadow(const Ledger& ledger);  // for LedgerHeader::shadow, as the next three
  static uint64_t regions();
};

// ---- The counters of a stack, for all code but the allocation path: the one place that knows how
// a record stores them. Thread-safe; async-signal-safe.

// Live bytes and blocks of the stack. A block that another thread frees meanwhile may still count,
// and one that another thread allocates meanwhile may not.
inline Totals live_of(const StackRecord& stack) {
  const Counters now = g_ledger.stacks.read(stack);
  return {live_bytes(now), live_blocks(now)};
}

// What is live on the heap, over all stacks.
struct Usage {
  uint64_t requested;  // bytes
  uint64_t usable;     // bytes; requested bytes for blocks of unknown usable size
  uint64_t blocks;
};
inline Usage usage() {
  Usage sum = {};
  g_ledger.stacks.for_each([&](uint32_t, const StackRecord& stack) {
    if (stack.kind != 0) return;
    const Totals live = live_of(stack);
    uint64_t slack = 0;
    g_ledger.stacks.each_set(stack, [&](const CounterSet& set) { slack += load(set.slack); });
    sum.requested += live.bytes;
    sum.blocks += live.blocks;
    // `slack` may be below zero while other threads count.
    sum.usable += live.bytes + (static_cast<int64_t>(slack) > 0 ? slack : 0);
  });
  return sum;
}

// Counts one resource of `bytes` as recorded by this stack, or as released by any stack. A stack of
// resources has no owner: all threads count in one set.
inline void count_recorded(StackRecord& stack, uint64_t bytes) {
  count_allocated(stack.own, false, {bytes, 1, 0});
}
inline void count_released(StackRecord& stack, uint64_t bytes) {
  count_freed(stack.own, false, {bytes, 1, 0, 0, false, false});
}

// The form of a stack's mappings (format/mapping_form.h); 0: none. It is in `set_aside`, which only
// the heap needs for the peak; the flag kLedgerMappingForm distinguishes it from bytes, which a
// fork's child stores there.
inline void set_mapping_form(StackRecord& stack, uint32_t form) {
  store(stack.own.set_aside, format::kLedgerMappingForm | form);
}
inline uint32_t mapping_form(const StackRecord& stack) {
  const uint64_t word = stack.kind != 0 ? load(stack.own.set_aside) : 0;
  return (word & format::kLedgerMappingForm) != 0 ? static_cast<uint32_t>(word) : 0;
}

// Counts `bytes` of a stack's regions as unmapped. `blocks`: the change in the number of its
// regions, -1, 0 or +1 (a hole makes two of one).
inline void count_cut(StackRecord& stack, uint64_t bytes, int blocks) {
  // A reader reads freed before allocated, and must never see more freed than allocated.
  if (blocks > 0) fetch_add<uint64_t>(stack.own.allocated_blocks, 1);
  if (bytes != 0) fetch_add(stack.own.freed_bytes, bytes);
  if (blocks >= 0) return;
  fetch_add<uint64_t>(stack.own.long_lived, 1);
  fetch_add<uint64_t>(stack.own.freed_blocks, 1);
}

// ---- Sampling (MTRACE_SAMPLE): when the next sample falls, and what a recorded block stands for
// where not every block is recorded. A block of `size` bytes is recorded with the probability p = 1
// - exp(-(size + 1) / mean), and counts as size / p bytes and 1 / p blocks (Horvitz, Thompson: A
// generalization of sampling without replacement from a finite universe, 1952).
// doc/internals/tables.md has the argument.
//
// Integers only: floating-point operations set status flags that belong to the program.
// Thread-safe; async-signal-safe.

// Bytes between two samples on average; 0: every block is recorded.
[[gnu::visibility("hidden")]] extern uint64_t g_sample_mean;

struct Weight {
  uint64_t bytes;
  uint64_t blocks;
};

// p * 2^64; UINT64_MAX where p is closer to 1. The relative error is below 2^-32.
uint64_t chance(uint64_t size, uint64_t mean);

// What a block counts as; the same for its whole life. The mean is not 0.
Weight weigh_sample(uint64_t mean, uintptr_t address, const Block& block);
inline Weight weigh(uintptr_t address, const Block& block) {
  const uint64_t mean = g_sample_mean;
  return mean != 0 ? weigh_sample(mean, address, block) : Weight{block.size, 1};
}

// Random numbers for statistics, not for secrets: SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014). Each number is drawn by one thread.
class Random {
 public:
  constexpr Random() = default;
  explicit constexpr Random(uint64_t seed) : state_(seed) {}
  void seed(uint64_t seed) { store(state_, seed); }

  // Uniform over all numbers of 64 bits.
  uint64_t operator()();
  // From the exponential distribution with this mean, rounded down. The mean is below 2^57.
  uint64_t exponential(uint64_t mean);

 private:
  uint64_t state_ = 0;
};

}  // namespace mtrace::ledger
