// A signal for a process whose program must still be the one that was looked at: exec takes the
// handler away, and the signal would end what comes after it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>

namespace mtrace::target {

// Stops all threads, asks `is_same` whether the program is what it was, and sends `signal` to a
// thread that does not block it. None of them can have left for another program in between, not by
// a raw system call either, and the signal is that thread's own: it is handled before the thread
// does anything else, or goes with the thread. Throws AttachError: nothing was sent.
void send_held(pid_t pid, int signal, const std::function<bool()>& is_same,
               std::chrono::milliseconds timeout);

}  // namespace mtrace::target
