#include "report/memory_use.h"

#include <cstring>

#include "base/process.h"

namespace mtrace::report {
namespace {

// The number of a line "NAME:   1234 kB" of /proc/PID/status (proc(5)), in bytes.
uint64_t kilobytes(const char* text, const char* name) {
  const char* at = strstr(text, name);
  if (at == nullptr) return 0;
  for (at += strlen(name); *at == ' ' || *at == '\t'; ++at) {
  }
  uint64_t value = 0;
  for (; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<uint64_t>(*at - '0');
  return value * 1024;
}

}  // namespace

MemoryUse memory_use() {
  // Not getrusage: its maximum outlives exec.
  char text[4096];
  // thread-self: of a process whose first thread has ended, self knows no memory.
  if (sys::read_file("/proc/thread-self/status", text, sizeof text) == 0) return {};
  return {kilobytes(text, "\nVmRSS:"), kilobytes(text, "\nVmHWM:"), kilobytes(text, "\nVmSize:")};
}

}  // namespace mtrace::report
