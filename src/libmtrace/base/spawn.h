// Starts the resolver so that the host does not notice: no SIGCHLD, nothing to wait for, no copy of
// its memory (doc/internals/reports.md, "Names"). Opens files so that the host does not notice
// ("Descriptors" there).
#pragma once

#include <sched.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::base {

// The children that the library makes, one of each kind at a time.
enum class Helper : uint8_t { kResolver, kEventWriter, kDecoder, kTrial, kTwin };

// Each of these fails with -EPERM when the program has made a pid namespace for its children.

// Runs function(argument) as a process of its own that shares this one's memory, on `stack_top`
// (16-byte aligned), with all signals as blocked as the caller's, untraced. Its end sends no
// signal; only a wait with __WCLONE or __WALL finds it. The function must not touch thread-local
// storage or errno, so it uses call_as_helper() only. The process shares the descriptors as a
// thread does, until leave_files_except(). Returns its pid or a negative errno.
long start_sharing(Helper helper, void* stack_top, int (*function)(void*), void* argument);

// Like start_sharing(), but the process has a copy of this one's memory, and the caller waits for
// its end without reaping it. The function must not change the descriptors, which are shared.
// Returns the pid or a negative errno.
long start_copy(Helper helper, void* stack_top, int (*function)(void*), void* argument);

// Copies this process for the tracer of the calling thread, which stops the copy before it runs;
// without a tracer the copy exits at once. The copy shares the descriptors, so that what the
// process closes is closed; its end sends no signal. Returns its pid or a negative errno.
long copy_process(Helper helper);

// Program to run by run_program().
struct Program {
  const char* path;
  char* const* argv;
  char* const* envp;
  int ignored_signal;    // 0: none
  uint64_t cpu_seconds;  // limit
  int niceness;
  int input = -1;  // descriptors, at least 3, that become 0 and 1; -1: /dev/null
  int output = -1;
};

// Only in a process made by start_sharing(): runs the program in its own session, first in line for
// the out-of-memory killer, with descriptors 0 to 2 only; *pid holds its pid while it runs. Returns
// at the program's end: its wait status, or a negative errno.
long run_program(const Program& program, uint32_t* pid, void* stack_top);
// Sends a signal to the program that runs now, if one does: never to another process of its pid.
// SIGTERM: it may finish what must not be left half done. `pid`: as given to run_program().
void signal_program(uint32_t& pid, int signal);

// Only in a process made by start_sharing(): stops sharing the descriptor table of the other
// process, and keeps only `a` and `b` (-1: none). Does not copy the table, since a copy keeps open
// what the other process closes (its peer sees no end, epoll goes on reporting it); the kernel
// copies only numbers below 64, during the one call. Where close_range(2) is missing (Linux 5.8) or
// forbidden, unshare(2) does copy the table. False: a filter forbids both calls, and the
// descriptors stay shared.
bool leave_files_except(int a, int b);
// Calls function(argument) with a descriptor table of its own, in which `kept` (-1: none) is the
// only one of the host's. So the host's other threads get the numbers that they would get without
// this library, and neither side can write to or close a file of the other. This thread waits.
// Takes 40 us, however many descriptors the host has. Calls the function directly in a program of
// one thread that has descriptors left, inside such a function, and where no thread can be made (a
// filter, a limit, valgrind). `stack_top`: a stack to use in any case but valgrind; nullptr: the
// host's will do.
void with_own_files(void (*function)(void*), void* argument, int kept = -1,
                    void* stack_top = nullptr);
// Whether the calling thread runs such a function, in a table that the host does not see.
bool has_own_files();
template <typename Function>
void with_own_files(const Function& function, int kept = -1) {
  with_own_files([](void* f) { (*static_cast<const Function*>(f))(); },
                 const_cast<Function*>(&function), kept);
}

// Whether a helper of this kind was made and is not reaped yet.
bool has_helper(Helper helper);
// Reaps the helper if it has ended. `wait`: waits for its end, which is near.
void collect(Helper helper, bool wait);
void collect_process(uint32_t pid, bool wait);
// In the child of a fork: drops the helper, which is a child of the parent.
void forget(Helper helper);

// Reaps the helpers that have ended; true if any is left. For waits of the program that find every
// child. Thread-safe, as is collect().
bool has_helpers();
bool is_helper(uint32_t pid);
// Call when a wait has found process `found`. True: it was a helper, and is reaped.
bool collect_found(uint32_t found);

// ---- Finds children of the program's own, as opposed to the library's. Async-signal-safe.

// Whether the program has clone children: children whose end sends no SIGCHLD, which only a wait
// with __WALL or __WCLONE finds. Several system calls per thread and child. kNotKnown where /proc
// is missing or shows another pid namespace.
enum class Answer : uint8_t { kNo, kYes, kNotKnown };
Answer has_clone_children();
// Whether the program may have some. Those made by system call instructions of its own, or before
// an exec or attach, show when no other child is left.
inline constinit bool g_clones = false;
// Call it before a clone(2) with these flags.
inline void note_clone(unsigned long flags) {
  if ((flags & CSIGNAL) != SIGCHLD && (flags & CLONE_THREAD) == 0) store(g_clones, true);
}

}  // namespace mtrace::base
