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

// Enters `block`, which a call for `size` bytes returned (nullptr: it failed), unless a hook nested
// in the call has, or no sample falls into it. Returns it. `moved`: the block at which a realloc
// was logged to begin (Reallocation::moved()). By values, like all below: a hook that passes an
// object needs a frame, even where it only jumps.
void* record(void* block, size_t size, Call call, unwind::Caller caller,
             const void* moved = nullptr);

// Takes `block` out of the ledger. Call it before the real free: once the real allocator has the
// block, another thread may be given the same address. False: it was not there, which is counted.
bool forget(void* block, Call call, unwind::Caller caller);
// The same where there may be no block. False: none is known there.
bool forget_known(void* block, Call call);
// Events of frees have their stack (MTRACE_EVENTS_FREE_STACKS).
extern bool g_free_stacks;

// A realloc under way: the old block is out of the ledger, its place kept or remembered. In the
// event log it begins and, where it fails, ends.
class Reallocation {
 public:
  Reallocation(void* block, unwind::Caller caller);
  void failed();     // the old block is as it was
  void succeeded();  // the old block is gone; record() follows for the new one
  // What record() wants to be told: the old block, if the begin was logged.
  const void* moved() const { return logged_ ? reinterpret_cast<void*>(address_) : nullptr; }
  size_t old_size() const { return block_.size; }  // requested bytes; 0: not known

 private:
  uintptr_t address_;
  ledger::Block block_ = {};
  uint64_t slack_ = 0;
  ledger::BlockTable::Reserved reserved_;
  uint32_t births_ = load(ledger::g_births);
  bool logged_;
};

// The slot of the calling thread in the ledger; 0: none.
uint32_t this_slot();

// A block that was freed unseen counts as freed once its address comes back. Before the first block
// is counted.
void count_missed_frees();

// Blocks freed within this time count as short-lived.
void set_short_lived(uint64_t milliseconds);

}  // namespace mtrace::hook
