// What has to be known of a process before it is attached to, and which processes are meant.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

#include "attach/attach.h"
#include "cli/command.h"

namespace mtrace::cli {

inline constexpr long kAttachTimeout = 10;  // seconds, by default

// Throws attach::AttachError where the process cannot be attached to, whatever it does.
attach::Target attach_target(pid_t pid);

// Does `step` with a process, and looks at the process anew when it has loaded something meanwhile.
// `step` gets the time that is left. Throws attach::AttachError.
attach::Done with_target(
    pid_t pid, std::chrono::milliseconds timeout,
    const std::function<attach::Done(const attach::Target&, std::chrono::milliseconds)>& step);

// The processes of the operands, each once. What none is called by is said, and `good` false.
// Throws UsageError when there are no operands.
std::vector<pid_t> named_processes(const Arguments& arguments, const Streams& streams, bool& good);

inline double milliseconds(std::chrono::microseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

}  // namespace mtrace::cli
