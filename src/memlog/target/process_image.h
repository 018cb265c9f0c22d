// What has to be known of a process before it is attached to, and which processes are meant.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

#include "target/attach.h"

namespace mtrace::target {

inline constexpr long kAttachTimeout = 10;  // seconds, by default

// Throws attach::AttachError where the process cannot be attached to, whatever it does.
target::ProcessImage process_image(pid_t pid);

// Does `step` with a process, and looks at the process anew when it has loaded something meanwhile.
// `step` gets the time that is left. Throws attach::AttachError.
Done with_target(
    pid_t pid, std::chrono::milliseconds timeout,
    const std::function<Done(const target::ProcessImage&, std::chrono::milliseconds)>& step);

inline double milliseconds(std::chrono::microseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

}  // namespace mtrace::target
