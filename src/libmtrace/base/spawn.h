// Starting the resolver so that the host cannot notice: no SIGCHLD, nothing to wait for, no copy
// of its memory. See doc/internals/reports.md, "Names". And opening files so that it cannot: "Descriptors"
// there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::sys {

// The children that the library makes, one of each kind at a time.
enum class Helper : uint8_t { kResolver, kEventWriter, kDecoder, kTrial, kTwin };

// None of these starts a process in a pid namespace that the program has made for its children.

// Runs function(argument) as a process of its own that shares this one's memory, on `stack_top`
// (16-byte aligned), with all signals as blocked as the caller's, untraced. Its end sends no
// signal; only a wait with __WCLONE or __WALL finds it. It must not touch thread-local storage or
// errno, so it may only use raw system calls. It shares the descriptors as a thread does, until it
// leaves them. Returns its pid or a negative errno.
long start_sharing(Helper helper, void* stack_top, int (*function)(void*), void* argument);

// Runs function(argument) in a process of its own with a copy of this one's memory, as above, and
// waits for its end, without collecting it. It leaves the descriptors as they are. Returns its pid
// or a negative errno.
long start_copy(Helper helper, void* stack_top, int (*function)(void*), void* argument);

// Makes a copy of this process for who traces the calling thread, and stops the copy before it
// runs: else it ends at once. It shares the descriptors, so that what the process closes is closed;
// its end sends no signal. Returns its pid or a negative errno.
long copy_process(Helper helper);

// Program to run by run_program().
struct Program {
  const char* path;
  char* const* argv;
  char* const* envp;
  int ignored_signal;            // 0: none
  uint64_t address_space_bytes;  // limits
  uint64_t cpu_seconds;
  int niceness = 19;
  int input = -1;  // descriptors, at least 3, that become 0 and 1; -1: /dev/null
  int output = -1;
};

// Only in a process made by start_sharing(): runs the program in its own session, first in line
// for the out-of-memory killer, without other descriptors than 0 to 2; its pid stands
// in *pid while it runs. Returns when it has ended: its wait status, or a negative errno.
long run_program(const Program& program, uint32_t* pid, void* stack_top);

// Only in a process made by start_sharing(): goes on without the other's descriptors but those two
// (-1: none). Not by a copy that is then closed: for as long as there is one, what the other
// process closes stays open (its peer sees no end, epoll goes on telling of it). The kernel copies
// those below 64 all the same, for the time of the one call. Where it cannot (Linux 5.8, a filter),
// they stay shared: false.
bool leave_files_except(int a, int b);
inline void leave_all_files() { leave_files_except(-1, -1); }
// Calls function(argument) with a table of descriptors of its own, where `kept` (-1: none) is the
// only one of the host's. Meanwhile the host's other threads get the numbers that they would get
// without this library, and none of theirs is ours to write to, or ours theirs to close. This
// thread waits. Takes 40 us, however many descriptors the host has. Called as usual in a program of
// one thread, in such a function itself, and where no thread can be made (a filter, a limit,
// valgrind). `stack_top`: of a stack to use in any case; nullptr: the host's will do.
void with_own_files(void (*function)(void*), void* argument, int kept = -1,
                    void* stack_top = nullptr);
// Does so with nothing to call, for what a filter of system calls makes of it.
void try_own_files();
template <typename Function>
void with_own_files(const Function& function, int kept = -1) {
  with_own_files([](void* f) { (*static_cast<const Function*>(f))(); },
                 const_cast<Function*>(&function), kept);
}
// Closes every descriptor of the calling process but those two.
void close_files_except(int a, int b);

// Whether such a process was made and is not collected yet.
bool has_helper(Helper helper);
// Collects it, if it has ended. `wait`: it is about to exit.
void collect(Helper helper, bool wait);
void collect_process(uint32_t pid, bool wait);
// In the child of a fork: it is the parent's.
void forget(Helper helper);

// For waits of the program that find every child. Thread-safe, as is collect(). Whether a helper is
// there, once those that have ended are collected.
bool has_helpers();
bool is_helper(uint32_t pid);
// A wait has found process `found`. True: it was a helper, which is collected.
bool collect_found(uint32_t found);

void kill_process(uint32_t pid);
// SIGTERM: what run_program() runs may first finish what must not be left half done.
void ask_to_end(uint32_t pid);

// Calls function(argument) on another stack, so that a report fits a host's small signal stack.
void call_on_stack(void* stack_top, void (*function)(void*), void* argument);

}  // namespace mtrace::sys
