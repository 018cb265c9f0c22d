#include "cli/process_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "target/process.h"

namespace mtrace::cli {

std::vector<pid_t> named_processes(const Arguments& arguments, const Streams& streams, bool& good) {
  if (arguments.operands().empty()) {
    throw UsageError(arguments.command() + ": no process given");
  }
  std::vector<pid_t> pids;
  for (const std::string& name : arguments.operands()) {
    const std::vector<pid_t> found = target::find_processes(name);
    if (found.empty()) {
      complain(streams, fmt::format("no process {}", name));
      good = false;
    }
    for (const pid_t pid : found) {
      if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
    }
  }
  return pids;
}

}  // namespace mtrace::cli
