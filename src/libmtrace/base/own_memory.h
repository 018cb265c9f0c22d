// The memory that this library has mapped for itself, so that it is not taken for the program's.
// Holds 2048 ranges of 64 KiB or more; smaller and further ones are not recorded.
// Lock-free, thread-safe, async-signal-safe.
#pragma once

#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/syscall.h"

namespace mtrace::base {

void add_own_range(uintptr_t start, size_t bytes);
void remove_own_range(uintptr_t start);

// Address of the ranges, in the form that the header of a ledger describes (kLedgerOwnRanges).
uint64_t own_ranges();

// Bytes of [start, end) that lie in own ranges.
uint64_t own_bytes_in(uintptr_t start, uintptr_t end);

// Writes a word of this process's memory whatever its protection, as a debugger does, so that no
// page's protection changes. `address` is a multiple of 8. False: the word is unchanged; /proc is
// missing, or the kernel forbids it.
bool write_own_word(uintptr_t address, uint64_t value);

// ---- Keeps the library's mappings out of the memory that the program locks with mlockall(2): they
// would count against RLIMIT_MEMLOCK, and every page would be allocated at once.
// By raw system calls; thread-safe, async-signal-safe, leaves errno alone.

// Call when future mappings of the process may be locked (MCL_FUTURE).
void keep_unlocked();

extern bool g_keeps_unlocked;
// map_own() once keep_unlocked() was called.
long map_unlocked(void* address, size_t bytes, int protection, int flags, int fd, long offset);

// mmap for this library: the mapping is not locked, and not refused because of the limit. Inline:
// malloc may come here, and takes no more stack for it.
inline long map_own(void* address, size_t bytes, int protection, int flags, int fd, long offset) {
  if (__atomic_load_n(&g_keeps_unlocked, __ATOMIC_RELAXED)) [[unlikely]] {
    return map_unlocked(address, bytes, protection, flags, fd, offset);
  }
  return call(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

// Whether RLIMIT_MEMLOCK has room for all mappings except the library's.
bool lock_limit_fits_program();

// Locks all present mappings except the library's, which it unlocks. `on_fault`: pages that are not
// there are locked when first touched. False: a filter of system calls forbids it, or /proc does
// not list the mappings.
bool lock_programs_memory(bool on_fault);

// ---- What the program took by sbrk and brk, in the mapping that is otherwise malloc's.
//
// Thread-safe; async-signal-safe.

struct BreakRange {
  uintptr_t start;
  uintptr_t end;
};
inline constexpr uint32_t kMostBreakRanges = 1024;
inline constinit BreakRange* g_break_ranges = nullptr;  // ascending; mapped for the first one
inline constinit uint32_t g_break_count = 0;
inline constinit uint32_t g_break_busy = 0;      // 1: a thread is in note_break()
inline constinit uint64_t g_break_unplaced = 0;  // bytes that have no range

// The program has moved the break.
inline void note_break(uintptr_t from, uintptr_t to) {
  uint64_t more = to > from ? to - from : 0;
  if (exchange(g_break_busy, 1u) != 0) {  // by another thread, or this handler interrupts it
    fetch_add(g_break_unplaced, more);
    return;
  }
  if (g_break_ranges == nullptr) {
    store_release(g_break_ranges,
                  static_cast<BreakRange*>(map_memory(kMostBreakRanges * sizeof(BreakRange))));
  }
  BreakRange* const ranges = g_break_ranges;
  uint32_t count = g_break_count;
  // What was above the break is no longer the program's.
  const uintptr_t low = std::min(from, to);
  while (count != 0 && ranges[count - 1].start >= low) --count;
  if (count != 0 && ranges[count - 1].end > low) store(ranges[count - 1].end, low);
  if (more != 0 && count != 0 && ranges[count - 1].end == from) {
    store(ranges[count - 1].end, to);
  } else if (more != 0 && ranges != nullptr && count < kMostBreakRanges) {
    store(ranges[count].start, from);
    store(ranges[count].end, to);
    ++count;
  } else {
    fetch_add(g_break_unplaced, more);
  }
  store_release(g_break_count, count);
  store_release(g_break_busy, 0u);
}

// Calls f(start, end) for each range that was noted, in ascending order.
template <typename F>
void each_break_range(F f) {
  const uint32_t count = load_acquire(g_break_count);
  for (uint32_t i = 0; i < count; ++i)
    f(load(g_break_ranges[i].start), load(g_break_ranges[i].end));
}

}  // namespace mtrace::base
