// Records the events of this process (MTRACE_EVENTS) for the writer of its log.
//
// Call each function at the moment that doc/internals/events.md, "Order", requires, and only while
// logs() is true. Thread-safe; async-signal-safe; leaves errno alone. `slot`: the calling thread's
// slot in the ledger; 0: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "events/ring.h"
#include "ledger/thread_slots.h"

namespace mtrace::events {

// For a new log: its forks are numbered from 1.
void begin_log();
// True: events are recorded.
[[gnu::visibility("hidden")]] extern bool g_logging;
inline bool logs() { return load(g_logging); }
void set_logging(bool on);

// An allocated block, for calls after the allocator returned it. `stack`: index in the stack table.
struct Block {
  uint32_t stack;
  uint64_t size;   // requested bytes
  uint64_t slack;  // usable less requested
};
void allocated(uint32_t slot, const void* address, const Block& block, ledger::Call call);
// Call before the allocator gets the block back. `stack`: of the call of free; 0: not recorded.
void freed(uint32_t slot, const void* address, bool known, uint32_t stack, ledger::Call call);
// Call realloc_begins() before a call of realloc, and one of the others after it.
void realloc_begins(uint32_t slot, const void* address);
void realloc_failed(uint32_t slot, const void* address);
void reallocated(uint32_t slot, const void* old, const void* address, const Block& block,
                 ledger::Call call);

void mapped(uint32_t slot, uintptr_t start, uint64_t bytes, uint32_t stack);
void unmapped(uint32_t slot, uintptr_t start, uint64_t bytes, uint32_t stack);
void remapped(uint32_t slot, uintptr_t old_start, uint64_t old_bytes, uintptr_t start,
              uint64_t bytes, uint32_t stack);

void thread_begins(uint32_t slot, uint32_t tid);
// Call in the thread that forks, before the fork. Returns the number of the fork; 0: no room to
// record it.
uint32_t fork_begins(uint32_t slot);
void recording(bool on);
// `label` may be nullptr.
void reported(uint32_t seq, const char* label);
void noted(const char* text);

}  // namespace mtrace::events
