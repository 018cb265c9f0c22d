// Per-thread state of the library: a few bytes. The rest is in the thread's slot of the ledger.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/machine.h"
#include "ledger/counters.h"
#include "ledger/thread_slots.h"
#include "unwind/walk_memory.h"

namespace mtrace::record {

// Where the block `counted` is.
struct LastBlock {
  uint64_t* word;           // in the shadow of the heap; nullptr: the block is in the hash table
  uint64_t held;            // the block is there while the word has this value; without a word,
                            // stack and birth of the block
  ledger::CounterSet* set;  // of the stack that allocated; probably the thread's own
};

// The first 64 bytes have what malloc and free use.
struct alignas(machine::kThreadAlign) ThreadState {
  const void* counted;        // what a hook on this thread recorded last: a block, not freed since
  ledger::ThreadSlot* place;  // the slot; nullptr: none
  unwind::WalkMemory* walks;  // of the slot
  uint64_t ownership;         // ledger::owned_by() the slot
  LastBlock last;
  uint64_t form;  // of the call under way, which reaches malloc by another hook: record/call_form.h
  uint32_t slot;  // 0: not acquired yet, or none is free (see no_slot)
  bool no_slot;
  bool asking;          // a query for a usable size is under way
  bool drawn;           // until_sample has been drawn
  bool forks_inside;    // the last fork was called inside an operation on the tables
  bool becomes_daemon;  // daemon() is under way
  uint8_t deleting;     // of a delete that has yet to call free: ledger::Call, less that of free
  uint32_t fork;        // number of the last fork in the event log; 0: not logged
  size_t requested;     // of an aligned new under way, whose size libstdc++ rounds up
  const void* moving;   // the block of a realloc or delete under way, which may call free by symbol
  // With MTRACE_SAMPLE only.
  uint64_t until_sample;   // bytes that blocks may have before the next one is recorded
  uint64_t before_call;    // until_sample before the call; UINT64_MAX: a nested hook has drawn
  uint64_t after_counted;  // until_sample when `counted` was set
  uint64_t form_set;       // until_sample when `form` was set
};
[[gnu::visibility("hidden")]] extern thread_local constinit ThreadState t_thread;

// Bytes from the thread pointer to t_thread: the same in every thread.
inline intptr_t thread_state_offset() {
  return reinterpret_cast<intptr_t>(&t_thread) -
         reinterpret_cast<intptr_t>(__builtin_thread_pointer());
}

}  // namespace mtrace::record
