#include "target/system_call_filters.h"

#include <algorithm>
#include <cstdlib>

#include "target/proc_files.h"

namespace mtrace::target {

// A kernel without "Seccomp_filters" still tells by "Seccomp" whether there is one.
uint32_t system_call_filters(pid_t pid) {
  uint32_t most = 0;
  for (const pid_t tid : ids_in(proc_path(pid, "task"))) {
    const std::string status = read_proc(task_path(pid, tid, "status")).value_or("");
    const auto number = [&](const char* key) {
      return static_cast<uint32_t>(std::strtoul(status_value(status, key).c_str(), nullptr, 10));
    };
    most = std::max({most, std::min(number("Seccomp"), 1u), number("Seccomp_filters")});
  }
  return most;
}

}  // namespace mtrace::target
