// A program as a child that a caller cannot tell from one run directly: its streams, arguments,
// signals, stops and end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace mtrace::target {

struct Ended {
  pid_t pid = 0;
  int status = 0;       // as wait() has it
  int start_error = 0;  // errno: it could not be run at all
  double seconds = 0;   // from start to end
};

// "ended with status 0", "was killed by SIGSEGV (Segmentation fault)".
std::string end_text(int status);

// Something to be done from time to time while the program runs.
struct Ticks {
  std::chrono::milliseconds every{0};  // 0: never
  std::function<void(pid_t)> action;
};

// Runs `command`, found by PATH, and waits for it. Signals that this process gets meanwhile are
// passed on, unless they came from the terminal, which sends them to the program, too. When the
// terminal stops the program, this process stops with it. All signals of this process are blocked
// meanwhile. Throws std::runtime_error when no process can be made.
Ended launch(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const Ticks& ticks);

// Ends this process as `signal` would have, without a core file. Returns only if it does not end.
void end_by(int signal);

}  // namespace mtrace::target
