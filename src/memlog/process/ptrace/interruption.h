// Signals that are to end memlog while it must not simply die: a process is stopped or held for it,
// or it has attached to one. Elsewhere they have their default action.
//
//   blocked   while threads of a process are stopped (Tasks), and while a program runs (launch())
//   caught    from catch_interruption() on
//
// What takes long there asks at each step, gives up, and lets the process go.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>

namespace mtrace::process {

// Whether SIGINT, SIGTERM, SIGHUP or SIGQUIT has been caught, or waits until it is unblocked.
bool interrupted();
// Throws AttachError if so.
void check_interruption();
// If such a signal waits until it is unblocked, ends this program by it at once, as SIGKILL would:
// where there is no other way to end soon, and the process gets on by itself then. Does nothing
// while a program runs that this one must wait for (launch()).
void end_if_interrupted();

// From here on SIGINT, SIGTERM and SIGHUP do not end memlog. One that is ignored stays so.
void catch_interruption();
// They do again.
void stop_catching();
// The signal that was caught; 0: none.
int caught_signal();

// While one exists in this thread, interrupted() is false: for what lets a process go, and while a
// borrowed thread must not be left.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

// While one exists, this program must not end before another has.
class Outlives {
 public:
  Outlives();
  ~Outlives();
  Outlives(const Outlives&) = delete;
  Outlives& operator=(const Outlives&) = delete;
};

// Sends a signal only if the process still runs the program that was examined. exec removes the
// handler, and the signal would then kill the new program.

// Stops all threads, checks with `is_same` that the program is unchanged, and sends `signal` to a
// thread that does not block it. No thread can execute another program in between, not even by a
// raw system call. The signal is sent to that one thread, which handles it before it does anything
// else, or takes it along when it ends. Throws AttachError when nothing was sent.
void send_held(pid_t pid, int signal, const std::function<bool()>& is_same,
               std::chrono::milliseconds timeout);

}  // namespace mtrace::process
