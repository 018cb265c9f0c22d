// Questions to the kernel about this process, by raw system calls. Async-signal-safe.
#pragma once

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

#include "base/syscall.h"

namespace mtrace::sys {

uint32_t process_id();
uint32_t thread_id();
// False only when the kernel says that there is no such thread.
bool thread_exists(uint32_t pid, uint32_t tid);
// The same for a thread of whatever process.
bool task_exists(uint32_t tid);

// Length written to `buffer` (always terminated when capacity > 0), 0 on failure or when the link
// does not fit.
size_t read_link(const char* path, char* buffer, size_t capacity);
// First `capacity` - 1 bytes of a file, terminated. 0 on failure.
size_t read_file(const char* path, char* buffer, size_t capacity);
// Absolute name of the working directory, 0 on failure.
size_t working_directory(char* buffer, size_t capacity);

// What restricts the system calls of the thread with that file: 0 nothing, otherwise the number of
// filters of seccomp(2), where the kernel tells it, or at least 1; -1: not known.
int seccomp_filters(const char* status = "/proc/thread-self/status");

// The host's name, cut to the capacity, always terminated.
void host_name(char* buffer, size_t capacity);

// Nanoseconds since 1970 (UTC) and since an arbitrary moment.
uint64_t real_time();
uint64_t monotonic_time();

// Blocks every signal but SIGSYS for the calling thread; the old mask for restore_signals().
uint64_t block_signals();
void restore_signals(uint64_t mask);
// A signal that the calling thread blocks is pending, for it or for the process.
bool is_pending(int signal);
// Sends the calling thread a signal that it is handling, with the information that came with it:
// it takes effect when the handler returns.
void send_again(int signal, const siginfo_t* information);
// Takes one pending `signal` of the calling thread or process, without waiting.
void discard_signal(int signal);

// Waits until `word` is no longer `value`, at most `nanoseconds`. May return early. The futex is
// not private: the waker may be another process that shares the memory.
void wait_on(const uint32_t& word, uint32_t value, uint64_t nanoseconds);
// The same, in the function that calls it: memlog sees by the innermost frame who waits.
[[gnu::always_inline]] inline void wait_here(const uint32_t& word, uint32_t value,
                                             uint64_t nanoseconds) {
  const timespec limit = {static_cast<time_t>(nanoseconds / 1'000'000'000u),
                          static_cast<long>(nanoseconds % 1'000'000'000u)};
  call_unasked(SYS_futex, internal::word(&word), FUTEX_WAIT, static_cast<long>(value),
               internal::word(&limit), 0, 0);
}
void wake_all(uint32_t& word);
void yield();

// The program's own, where libc's function cannot be called. No filter is asked (base/filters.h).
long raw_system_call(long number, long a, long b, long c, long d, long e, long f);

[[noreturn]] void exit_group(int status);

// One page that reads as zero in the child of a fork but not in one that shares the memory
// (vfork, CLONE_VM). nullptr: the kernel cannot.
uint64_t* map_wiped_on_fork();

}  // namespace mtrace::sys
