// Queries and requests to the kernel for this process, by raw system calls. Async-signal-safe.
#pragma once

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

#include "base/machine.h"
#include "base/syscall.h"

namespace mtrace::base {

uint32_t process_id();
uint32_t thread_id();
// A full fence on every thread of the process. False: the kernel has no membarrier(2), or a filter
// of system calls might end the program for it.
bool fence_all_threads();
// False only when the kernel says that there is no such thread.
bool thread_exists(uint32_t pid, uint32_t tid);
// thread_exists() for a thread of any process.
bool task_exists(uint32_t tid);

// Writes to `buffer` (always terminated when capacity > 0); returns the length, 0 on failure or
// when the link does not fit.
size_t read_link(const char* path, char* buffer, size_t capacity);
// read_link() of the program that this process runs.
size_t program_path(char* buffer, size_t capacity);
// Reads the first `capacity` - 1 bytes of a file, terminated; returns their number, 0 on failure.
size_t read_file(const char* path, char* buffer, size_t capacity);
// Writes the absolute path of the working directory; returns its length, 0 on failure.
size_t working_directory(char* buffer, size_t capacity);

// Number of seccomp(2) filters of the thread with that status file; at least 1 where the kernel
// does not report the number; 0: no filter; -1: not known.
int seccomp_filters(const char* status = "/proc/thread-self/status");

// The host's name, cut to the capacity, always terminated.
void host_name(char* buffer, size_t capacity);

// Nanoseconds since 1970 (UTC) and since an arbitrary moment.
uint64_t real_time();
uint64_t monotonic_time();

// Blocks every signal but SIGSYS for this thread; returns the mask for restore_signals().
uint64_t block_signals();
void restore_signals(uint64_t mask);
// Whether `signal`, which the calling thread blocks, is pending for the thread or the process.
bool is_pending(int signal);
// Sends the calling thread the signal that it is handling once more, with the same siginfo; the
// signal takes effect when the handler returns.
void send_again(int signal, const siginfo_t* information);
// Removes one pending `signal` of the calling thread or process, without waiting.
void discard_signal(int signal);

// Waits until `word` is no longer `value`, at most `nanoseconds`. May return early. The futex is
// not private: the waker may be another process that shares the memory.
void wait_on(const uint32_t& word, uint32_t value, uint64_t nanoseconds);
// wait_on() inlined into its caller: memlog recognises a waiting thread by the innermost frame.
[[gnu::always_inline]] inline void wait_here(const uint32_t& word, uint32_t value,
                                             uint64_t nanoseconds) {
  const timespec limit = {static_cast<time_t>(nanoseconds / 1'000'000'000u),
                          static_cast<long>(nanoseconds % 1'000'000'000u)};
  call_unasked(SYS_futex, &word, FUTEX_WAIT, value, &limit);
}
void wake_all(uint32_t& word);
void wake_all_as_helper(uint32_t& word);  // see call_as_helper()
void yield();

[[noreturn]] void exit_group(int status);

// Maps a page that reads as zero in the child of a fork but not in one that shares the memory
// (vfork, CLONE_VM). nullptr: the kernel cannot.
uint64_t* map_wiped_on_fork();

// ---- Installs a signal handler before libc's sigaction can be called: sigaction may be another
// library's, which is not initialised yet.

// Installs `handler` if `signal` has the default action. It runs with all signals blocked, on the
// alternate stack if there is one. False: there is another action, or no way to catch the signal.
bool catch_by_default(int signal, void (*handler)(int));

// ---- Requests to valgrind, where the program runs under it: a sequence of instructions that
// changes nothing on a processor, and that valgrind recognises (its manual, "The Client Request
// mechanism"). The numbers are part of its interface.

// Returns the answer, 0 without valgrind. Async-signal-safe.
inline uint64_t ask_valgrind(uint64_t request) {
  const uint64_t words[6] = {request};
  return machine::ask_valgrind(words);
}

inline bool on_valgrind() { return ask_valgrind(0x1001) != 0; }

}  // namespace mtrace::base
