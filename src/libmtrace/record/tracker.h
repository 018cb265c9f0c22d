// What happens at each allocation and free. Straight lines: see the .cc file first.
//
// Thread-safe and async-signal-safe; leaves errno alone; takes no lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "ledger/ledger.h"
#include "next/mode.h"
#include "record/sampler.h"
#include "record/thread_state.h"
#include "unwind/walker.h"

namespace mtrace::hook {

using ledger::Call;

// True: blocks of this process are taken out of the ledger when they are freed, after doing what
// a new process has to do first. Kept out of the hot path.
bool counting_slowly();
inline bool counting() { return load(*g_counting) == kRecording || counting_slowly(); }
// True: and new ones are put in.
bool recording_slowly();
inline bool recording() { return load(*g_counting) == kRecording || recording_slowly(); }

// A hook says this before it calls the real function: a hook nested in that call that counts the
// block leaves its mark, and the block is counted once.
inline void before_call() {
  t_thread.counted = nullptr;
  if (samples()) t_thread.before_call = t_thread.until_sample;
}

// Counts `block` (nullptr: the allocation failed) and returns it.
void* record(void* block, size_t size, Call call, unwind::Caller caller);
// The same, of a block into which a sample may fall.
void* record_sample(void* block, size_t size, Call call, unwind::Caller caller);
// The result of a realloc that was logged to begin (Reallocation::log_begin()) at `old`.
void* record_moved(void* block, size_t size, Call call, unwind::Caller caller, const void* old);
inline void* allocated(void* block, size_t size, Call call, unwind::Caller caller) {
  return samples() ? record_sample(block, size, call, caller) : record(block, size, call, caller);
}

// There was no place for a block of malloc. Returns it.
void* enter_unplaced_malloc(void* block);

// Takes `block` out of the ledger. False: it was not there, which has been counted.
bool forget(void* block, Call call);
// The same, of which `caller` is told with MTRACE_UNKNOWN=stacks.
void forget_for(void* block, Call call, unwind::Caller caller);
// The same, of a process that does not simply record.
void forget_unusually(void* block, Call call, unwind::Caller caller);
void forget_sample(void* block);
// Events of frees have their stack (MTRACE_EVENTS_FREE_STACKS).
extern bool g_free_stacks;
// The same where there may be no block. False: none is known there.
bool forget_known(void* block, Call call);
// The program frees `block`. Call it before the real free: once the real allocator has the block,
// another thread may be given the same address.
[[gnu::always_inline]] inline void freed(void* block, Call call, unwind::Caller caller) {
  if (!samples()) {
    if (load(*g_counting) == kRecording) [[likely]]
      forget_for(block, call, caller);
    else if (counting_slowly())
      forget_unusually(block, call, caller);
  } else if (may_be_recorded(block)) {
    forget_sample(block);
  }
}
// A call that reaches another hook, which does the rest (operator new of libstdc++).
void passed_on(Call call);

// A realloc under way: the old block is out of the ledger, its place kept or remembered.
class Reallocation {
 public:
  Reallocation(void* block, unwind::Caller caller);
  void failed();  // the old block is as it was
  // The old block is gone; allocated() follows for the new one, `fresh`.
  void succeeded(const void* fresh);
  // In the event log: before the call, and after one that failed.
  void log_begin() const;
  void log_failed() const;
  bool known() const { return reserved_.known; }
  size_t old_size() const { return block_.size; }  // requested bytes, of a known block

 private:
  bool counted() const { return reserved_.known || unplaced_.blocks != 0; }

  uintptr_t address_;
  unwind::Caller caller_;
  ledger::Block block_ = {};
  uint64_t slack_ = 0;
  ledger::Weight unplaced_ = {};  // of a block without a place; no blocks: it is none
  ledger::BlockTable::Reserved reserved_;
  uint32_t births_ = load(ledger::g_births);
};

// The slot of the calling thread in the ledger; 0: none.
uint32_t this_slot();

// A block that was freed unseen counts as freed once its address comes back. Before the first block
// is counted.
void count_missed_frees();

// Blocks freed within this time count as short-lived.
void set_short_lived(uint64_t milliseconds);

}  // namespace mtrace::hook
