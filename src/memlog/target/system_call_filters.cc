#include "target/system_call_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace mtrace::target {
namespace {

// Returns the number after a name; 0: the line has another name.
uint32_t number(const std::string& line, const char* name) {
  const std::string start = fmt::format("{}:\t", name);
  if (!line.starts_with(start)) return 0;
  return static_cast<uint32_t>(std::strtoul(line.c_str() + start.size(), nullptr, 10));
}

}  // namespace

uint32_t system_call_filters(pid_t pid) {
  uint32_t most = 0;
  std::error_code gone;
  for (std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", pid), gone), end;
       task != end; task.increment(gone)) {
    std::ifstream status(task->path() / "status");
    for (std::string line; std::getline(status, line);) {
      most = std::max(most, number(line, "Seccomp") != 0 ? 1u : 0u);
      most = std::max(most, number(line, "Seccomp_filters"));
    }
  }
  return most;
}

}  // namespace mtrace::target
