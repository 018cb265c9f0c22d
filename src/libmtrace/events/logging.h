// The events of this process (MTRACE_EVENTS), as records for the writer of its log.
//
// Each is called at the moment that doc/events.md, "Order", asks for. Only while logs() is true.
// Thread-safe; async-signal-safe; leaves errno alone. `slot`: of the calling thread in the ledger,
// 0: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "events/ring.h"
#include "ledger/calls.h"

namespace mtrace::events {

// Forgets which stacks and modules the log knows: it is a new one. False: no memory.
bool begin_log();
// True: events are recorded. By a thread that is alone.
[[gnu::visibility("hidden")]] extern bool g_logging;
inline bool logs() { return load(g_logging); }
void set_logging(bool on);

// A block, after the allocator gave it. `stack`: index in the stack table.
struct Block {
  uint32_t stack;
  uint64_t size;   // requested bytes
  uint64_t slack;  // usable less requested
};
void allocated(uint32_t slot, const void* address, const Block& block, ledger::Call call);
// Before the allocator gets it back. `stack`: of the free; 0: not kept.
void freed(uint32_t slot, const void* address, bool known, uint32_t stack, ledger::Call call);
// Before the call of realloc, and after it.
void realloc_begins(uint32_t slot, const void* address);
void realloc_failed(uint32_t slot, const void* address);
void reallocated(uint32_t slot, const void* old, const void* address, const Block& block,
                 ledger::Call call);

void mapped(uint32_t slot, uintptr_t start, uint64_t bytes, uint32_t stack);
void unmapped(uint32_t slot, uintptr_t start, uint64_t bytes);
void remapped(uint32_t slot, uintptr_t old_start, uint64_t old_bytes, uintptr_t start,
              uint64_t bytes, uint32_t stack);

void thread_begins(uint32_t slot, uint32_t tid);
// In the thread that forks, before it does. Returns the number of the fork; 0: there was no room to
// tell of it.
uint32_t fork_begins(uint32_t slot);
void recording(bool on);
// `label` may be nullptr.
void reported(uint32_t seq, const char* label);
void noted(const char* text);

}  // namespace mtrace::events
