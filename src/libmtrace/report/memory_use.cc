#include "report/memory_use.h"

#include <algorithm>
#include <cstring>

#include "base/atomic.h"
#include "base/file.h"
#include "base/process.h"
#include "base/table_file.h"
#include "base/table_memory.h"
#include "base/writer.h"
#include "format/memlog.h"
#include "report/host.h"

namespace mtrace::report {

namespace {

// The number of a line "NAME:   1234 kB" of /proc/PID/status (proc(5)), in bytes.
uint64_t kilobytes(const char* text, const char* name) {
  const char* at = strstr(text, name);
  return at == nullptr ? 0 : number_at(at + strlen(name)) * 1024;
}

constexpr size_t kLongestPath = 4096;

uint64_t g_most_resident = 0;  // bytes, in any answer of memory_use()

// The number in a file, or `otherwise`, also for "max".
uint64_t number_in(const char* path, uint64_t otherwise) {
  char text[32];
  if (base::read_file(path, text, sizeof text) == 0 || text[0] < '0' || text[0] > '9') {
    return otherwise;
  }
  return number_at(text);
}

// The least limit of the group `group` (its bytes up to `length`) and those above it.
uint64_t least_limit(const char* root, const char* below, const char* group, size_t length,
                     const char* file, uint64_t least) {
  for (;;) {
    char path[kLongestPath];
    Writer out(path, sizeof path);
    out.text(root).text(below).bytes(group, length).put('/').text(file).put('\0');
    if (out.finish() == 0) {
      const uint64_t limit = number_in(path, least);
      if (limit < least) least = limit;
    }
    while (length > 0 && group[length - 1] != '/') --length;
    if (length == 0) return least;
    --length;
  }
}

}  // namespace

MemoryUse memory_use() {
  // Not getrusage: its maximum outlives exec.
  char text[4096];
  // thread-self: of a process whose first thread has ended, self knows no memory.
  if (base::read_file("/proc/thread-self/status", text, sizeof text) == 0) return {};
  MemoryUse use = {kilobytes(text, "\nVmRSS:"), kilobytes(text, "\nVmHWM:"),
                   kilobytes(text, "\nVmSize:")};
  // The kernel's counts are approximate: VmHWM may be below an earlier VmRSS.
  uint64_t most = load(g_most_resident);
  while (most < use.resident_max && !compare_exchange(g_most_resident, most, use.resident_max)) {
  }
  use.resident_max = std::max(most, use.resident_max);
  return use;
}

void reset_memory_use() { store(g_most_resident, uint64_t{0}); }

uint64_t memory_limit(const char* root) {
  char path[kLongestPath];
  const auto in_root = [&](const char* name) {
    Writer(path, sizeof path).text(root).text(name).put('\0').finish();
    return path;
  };
  char text[kLongestPath];
  uint64_t least = UINT64_MAX;
  if (base::read_file(in_root("/proc/self/cgroup"), text, sizeof text) != 0) {
    // Lines "NUMBER:CONTROLLERS:GROUP"; without controllers for version 2.
    for (const char* line = text; *line != '\0';) {
      const size_t length = strcspn(line, "\n");
      const char* const memory = strstr(line, "memory");
      const char* const names = static_cast<const char*>(memchr(line, ':', length));
      const char* const group =
          names == nullptr
              ? nullptr
              : static_cast<const char*>(memchr(names + 1, ':', line + length - names - 1));
      if (group != nullptr) {
        const auto size = static_cast<size_t>(line + length - group - 1);
        const auto named = static_cast<size_t>(group - names - 1);
        if (named == 0) {
          least = least_limit(root, "/sys/fs/cgroup", group + 1, size, "memory.max", least);
        } else if (memory != nullptr && memory < group) {
          least = least_limit(root, "/sys/fs/cgroup/memory", group + 1, size,
                              "memory.limit_in_bytes", least);
        }
      }
      line += length + (line[length] == '\n');
    }
  }
  const bool known = base::read_file(in_root("/proc/meminfo"), text, sizeof text) != 0;
  const uint64_t computer = known ? kilobytes(text, "MemTotal:") : 0;
  return computer != 0 && computer < least ? computer : least == UINT64_MAX ? 0 : least;
}

namespace {

using format::OwnCost;

OwnCost& cost() { return base::g_table_header->cost; }

}  // namespace

OwnCost measure_cost(const ledger::Ledger& ledger) {
  store(cost().shadow, ledger.blocks.shadow_bytes());
  store(cost().memory, load(base::g_table_growth.bytes) + sizeof ledger);
  return cost();
}

void add_stopped(uint64_t nanoseconds) {
  store(cost().stopped, load(cost().stopped) + nanoseconds);
}

void full_since(uint64_t time) { store(cost().full_since, time); }

void write_cost(Writer& out, const ledger::Ledger& ledger, uint64_t calls) {
  const OwnCost now = measure_cost(ledger);
  out.meta(format::kKeyCost).text("memory=").number(now.memory);
  out.text(" shadow=").number(now.shadow);
  out.text(" stopped-us=").number(now.stopped / 1000);
  if (calls != 0) {
    const uint64_t nanoseconds = calls * format::kCallNanoseconds + now.stopped;
    out.text(" processor-ms=").number(nanoseconds / 1'000'000u);
  }
  out.put('\n');
}

void write_full_since(Writer& out) {
  const uint64_t since = load(cost().full_since);
  if (since == 0) return;
  out.meta(format::kKeyNote).text("new blocks are lost since ").time(since);
  out.text(", when the tables had reached MTRACE_MAX_MEMORY\n");
}

}  // namespace mtrace::report
