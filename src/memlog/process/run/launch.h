// Runs a program as a child that its caller cannot tell from a direct run: same streams, arguments,
// signals, stops and end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace mtrace::process {

struct Ended {
  pid_t pid = 0;
  int status = 0;       // as from wait()
  int start_error = 0;  // errno if the program could not be run; else 0
  double seconds = 0;   // of running time
};

// Returns "ended with status 0", "was killed by SIGSEGV (Segmentation fault)", ...
std::string end_text(int status);

// An action to repeat while the program runs.
struct Tick {
  std::chrono::milliseconds every{0};  // interval; 0: never
  std::function<void(pid_t)> action;
};
using Ticks = std::vector<Tick>;

// Runs `command`, found by PATH, and waits for its end. Forwards the signals that this process
// receives, except those from the terminal: the terminal sends these to the program, too. When the
// terminal stops the program, this process stops with it. Blocks all signals of this process
// meanwhile. Throws std::runtime_error when no process can be created.
Ended launch(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const Ticks& ticks);

// Ends this process by `signal`, without a core file. Returns only if the process survives.
void end_by(int signal);

}  // namespace mtrace::process
