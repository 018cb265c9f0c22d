// Gathers the facts needed to attach to a process, and selects the processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

#include "process/ptrace/attach.h"

namespace mtrace::process {

inline constexpr long kAttachTimeout = 10;  // seconds, the default

// Takes the image of a process. Throws AttachError when attaching can never work for it.
process::ProcessImage process_image(pid_t pid);

// Runs `step` with the image of a process; takes a new image and runs it again when the process has
// loaded something meanwhile. `step` gets the remaining time. Throws AttachError.
void with_image(
    pid_t pid, std::chrono::milliseconds timeout,
    const std::function<void(const process::ProcessImage&, std::chrono::milliseconds)>& step);
// The same of a process that was not started with the library. Throws Preloaded for another.
Done with_target(
    pid_t pid, std::chrono::milliseconds timeout,
    const std::function<Done(const process::ProcessImage&, std::chrono::milliseconds)>& step);

inline double in_milliseconds(std::chrono::microseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

}  // namespace mtrace::process
