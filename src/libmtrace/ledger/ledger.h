// All tables of this process. One static object, zero until init(); its memory is never given back,
// because frees arrive to the very end. It fills whole pages, so that a file can be mapped in its
// place (base/table_file.h).
#pragma once

#include <cstdint>

#include "base/machine.h"
#include "base/table_memory.h"
#include "format/ledger.h"
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

}  // namespace mtrace::ledger
