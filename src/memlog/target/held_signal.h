// Sends a signal only if the process still runs the program that was examined. exec removes the
// handler, and the signal would then kill the new program.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>

namespace mtrace::target {

// Stops all threads, checks with `is_same` that the program is unchanged, and sends `signal` to a
// thread that does not block it. No thread can execute another program in between, not even by a
// raw system call. The signal is sent to that one thread, which handles it before it does anything
// else, or takes it along when it ends. Throws AttachError when nothing was sent.
void send_held(pid_t pid, int signal, const std::function<bool()>& is_same,
               std::chrono::milliseconds timeout);

}  // namespace mtrace::target
