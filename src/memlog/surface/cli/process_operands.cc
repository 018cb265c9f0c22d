#include "surface/cli/process_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

#include "process/inspect/error.h"
#include "process/inspect/process.h"
#include "process/ptrace/interruption.h"
#include "process/ptrace/process_image.h"
#include "util/text.h"

namespace mtrace::cli {

std::vector<pid_t> named_processes(const Arguments& arguments, const Streams& streams, bool& good) {
  if (arguments.operands().empty()) {
    throw UsageError(arguments.lacking("no process given"));
  }
  std::vector<pid_t> pids;
  for (const std::string& name : arguments.operands()) {
    const std::vector<pid_t> found = process::find_processes(name);
    if (found.empty()) {
      complain(streams, process::no_process_text(name));
      good = false;
    }
    for (const pid_t pid : found) {
      if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
    }
  }
  return pids;
}

WatchedProcess::WatchedProcess(const Arguments& arguments, const Streams& streams) {
  const auto attach = [&](pid_t pid) {
    const std::string name = util::escaped(process::process_name(pid), "");
    try {
      attachment_.emplace(pid);
    } catch (const process::AttachError& error) {
      throw std::runtime_error(fmt::format("{} ({}) {}", pid, name, error.what()));
    }
    complain(streams, fmt::format("attached to {} ({}), stopped for {:.1f} ms; detaches at the end",
                                  pid, name, process::in_milliseconds(attachment_->stopped())));
  };
  std::function<void(pid_t)> wanted;
  if (arguments.has("--attach")) wanted = attach;
  target_.emplace(arguments.operands()[0], arguments.command(), wanted);
  if (attachment_) process::catch_interruption();
}

}  // namespace mtrace::cli
