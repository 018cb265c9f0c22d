// Keeps what this library maps out of the memory that the program locks with mlockall(2): it would
// count against RLIMIT_MEMLOCK, and all of it would be made at once.
// By raw system calls; thread-safe, async-signal-safe, leaves errno alone.
#pragma once

#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#include "base/syscall.h"

namespace mtrace::sys {

// From now on the program may have what is mapped later locked (MCL_FUTURE).
void keep_unlocked();

extern bool g_keeps_unlocked;
// map_own() once keep_unlocked() was called.
long map_unlocked(void* address, size_t bytes, int protection, int flags, int fd, long offset);

// mmap for this library: what it maps is not locked, and is not refused because of the limit.
// Inline: malloc may come here, and takes no more stack for it.
inline long map_own(void* address, size_t bytes, int protection, int flags, int fd, long offset) {
  if (__atomic_load_n(&g_keeps_unlocked, __ATOMIC_RELAXED)) [[unlikely]] {
    return map_unlocked(address, bytes, protection, flags, fd, offset);
  }
  return call(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

// What mlockall asks the kernel for, where that of libc cannot be called.
long raw_mlockall(int flags);

// Whether the limit has room for all that is mapped but what this library has.
bool lock_limit_fits_program();

// Locks all that is mapped now but what this library has, and unlocks that. `on_fault`: pages that
// are not there stay so until they are touched. False: a filter of system calls forbids it, or
// /proc does not tell what is mapped.
bool lock_programs_memory(bool on_fault);

}  // namespace mtrace::sys
