// Reading memory that may not be there, without a fault and without a signal handler.
// All functions are async-signal-safe, thread-safe and leave errno alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/machine.h"

namespace mtrace::base {

// True when each page that [start, start + bytes) touches can be read now. One system call per page
// (about 0.1 us); another thread may unmap the range afterwards.
bool readable(uintptr_t start, size_t bytes);

// False when some page of [start, start + bytes) is not mapped, whatever its protection. One system
// call, which changes nothing; true where the kernel forbids it (seccomp).
bool mapped(uintptr_t start, size_t bytes);

// Resident bytes of [start, start + bytes), which begins a page and is mapped; all of them where
// the kernel does not report residency. One system call per 2 MiB.
size_t resident_bytes(uintptr_t start, size_t bytes);

// Sets a byte for each page of [start, start + bytes), which begins and ends a page: 1 if the page
// is resident, else 0. False: the range is not mapped, or the kernel does not report residency.
bool find_resident(uintptr_t start, size_t bytes, unsigned char* pages);

// Copies `bytes` (below 2 GiB) from `from`; false, with `to` undefined, when a part cannot be
// read. Two system calls as a rule (about 1.5 us). Where the kernel forbids process_vm_readv
// (seccomp) the range is probed and then read, so that only then a concurrent unmapping by
// another thread could still fault.
bool read_memory(uintptr_t from, void* to, size_t bytes);

// Copies like read_memory() if all pages are resident; otherwise returns false and touches none:
// with userfaultfd a page may be one that only the calling thread could supply. Where a filter of
// system calls hides residency, the same as read_memory().
bool read_resident(uintptr_t from, void* to, size_t bytes);

// Stops the use of process_vm_readv: a filter of system calls may end the program for it.
void only_probe();
bool may_be_filtered();  // true after only_probe()

inline bool read_word(uintptr_t from, uintptr_t* to) { return read_memory(from, to, sizeof *to); }

// Copies a NUL-terminated string into `to` (`size` bytes, NUL included); false when it cannot be
// read or is longer.
bool read_string(uintptr_t from, char* to, size_t size);

// ---- Pages as the kernel has them: it refuses addresses and offsets in a file that are on no
// boundary.

inline uintptr_t page_start(uintptr_t address) { return address & ~(machine::page_bytes() - 1); }
// Rounds as the kernel does, wrap included.
inline uintptr_t whole_pages(uintptr_t bytes) {
  return page_start(bytes + machine::page_bytes() - 1);
}

}  // namespace mtrace::base
