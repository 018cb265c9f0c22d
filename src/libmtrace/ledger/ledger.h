// All tables of this process. One static object, zero until init(); nothing in it is ever given
// back, because frees arrive to the very end. It fills whole pages, so that a file can be mapped in
// its place (base/table_file.h).
#pragma once

#include <cstdint>

#include "base/growing_array.h"
#include "format/ledger.h"
#include "ledger/block_table.h"
#include "ledger/ignored_objects.h"
#include "ledger/peak.h"
#include "ledger/sampling.h"
#include "ledger/stack_table.h"
#include "ledger/thread_slots.h"
#include "ledger/unplaced.h"

namespace mtrace::ledger {

// Of what was live at the previous report of a sampled process; written as `reported` is.
struct ReportedVariance {
  GrowingArray<Variance> of_stacks;  // by ordinal
  Variance total;
  uint64_t ticks;  // when it was taken
};

struct alignas(format::kLedgerPage) Ledger {
  StackTable stacks;
  BlockTable blocks;
  Peak peak;  // in one page with the end of `blocks`, and with what the first threads have
  ThreadSlots threads;
  Sampling sampling;
  // Of a stack, by ordinal, as of the last report: the start of the next deltas; written by the one
  // thread that reports.
  GrowingArray<Counters, format::kReportedChunk> reported;
  ReportedVariance reported_variance;
  Totals inherited;        // live at the fork; zero in a process that exec'ed
  uint64_t reported_peak;  // its height as of the last report
  Unplaced unplaced;
  // Operations of threads that vanished in a fork, and blocks whose realloc was under way in one.
  uint64_t lost_inflight;
  uint64_t lost_frees;  // of blocks whose address came back without one
  // The program's, for report/notes.cc; here, so that they outlive a kill with the rest.
  format::LedgerNote notes[format::kLedgerNotes];
  IgnoredObjects ignored;

  bool init(StackTable::CameBack came_back) { return stacks.init(came_back) && blocks.init(); }

  // In the child of a fork, alone: makes the tables consistent and the present state the base of
  // the next report. `survivor` is the thread slot of the only thread, `tid` its new id.
  void rebase_after_fork(uint32_t survivor, uint32_t tid);
  // Alone, when the program has gone on unseen: no block is known any more, and the heap's counters
  // start at 0. `child`: see ThreadSlots::forget_counts().
  void forget_all(uint32_t child);

  // The same for one whose tables were the parent's file and are gone: init() has made new ones.
  void begin_after_fork(uint32_t survivor, uint32_t tid);

 private:
  Totals live_heap() const;  // by the counters
  void count_anew();
  void remember_variance();
};

[[gnu::visibility("hidden")]] extern Ledger g_ledger;

// How many of this process and those above it have begun with new tables at their fork: what an
// operation began before must not end in the new ones.
[[gnu::visibility("hidden")]] extern uint32_t g_births;

}  // namespace mtrace::ledger
