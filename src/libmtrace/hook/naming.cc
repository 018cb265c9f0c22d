#include "hook/naming.h"

#include <cstring>

#include "base/file.h"
#include "base/filters.h"
#include "base/process.h"
#include "base/syscall.h"
#include "base/writer.h"
#include "hook/fork.h"
#include "hook/installation.h"
#include "hook/lifecycle.h"
#include "hook/options.h"
#include "report/host.h"

namespace mtrace::hook {
namespace {

constexpr size_t kMappings = 256 * 1024;  // bytes of a parent's /proc/PID/maps that are looked at
constexpr uint64_t kMillisecond = 1'000'000;

// What /proc/self/stat says (proc(5)).
struct Relatives {
  uint64_t parent = 0;           // 0: in another namespace, or not known
  uint64_t children_faults = 0;  // minor page faults of the children that were waited for
};

Relatives relatives() {
  char text[1024];
  if (sys::read_file("/proc/self/stat", text, sizeof text) == 0) return {};
  // "PID (NAME) STATE PPID ...": a name may hold anything.
  const char* name_end = strrchr(text, ')');
  const char* at = name_end != nullptr ? strchr(name_end, ' ') : nullptr;
  Relatives found;
  constexpr int kParent = 4;
  constexpr int kChildrenFaults = 11;
  for (int field = 2; at != nullptr && field <= kChildrenFaults; at = strchr(at + 1, ' ')) {
    uint64_t value = 0;
    for (const char* p = at + 1; *p >= '0' && *p <= '9'; ++p) value = value * 10 + (*p - '0');
    ++field;
    if (field == kParent) found.parent = value;
    if (field == kChildrenFaults) found.children_faults = value;
  }
  return found;
}

// Whether `text` has a line that ends in `name`.
bool has_line(const char* text, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = strstr(text, name); at != nullptr; at = strstr(at + length, name)) {
    if (at[length] == '\n') return true;
  }
  return false;
}

// Whether the library is mapped into the process. Of memlog, which may have it and does not count,
// the program is mapped as well.
bool is_traced(uint64_t pid) {
  const char* name = strrchr(own_path(), '/');
  auto* text = name != nullptr ? static_cast<char*>(sys::map_memory(kMappings)) : nullptr;
  if (text == nullptr) return false;
  char path[32];
  Writer(path, sizeof path).text("/proc/").number(pid).text("/maps").finish();
  sys::read_file(path, text, kMappings);
  const bool traced = has_line(text, name) && !has_line(text, "/memlog");
  sys::unmap_memory(text, kMappings);
  return traced;
}

// Patterns choose among programs: the parent may have the library and not count.
bool has_traced_parent(uint64_t parent) {
  if (parent == 0) return false;
  if (parent == report::g_host.parent) return true;
  return !is_late() && strcmp(g_options.follow, "1") == 0 && is_traced(parent);
}

}  // namespace

bool is_started_by(const char* tool) {
  const uint64_t parent = relatives().parent;
  if (tool == nullptr || parent == 0) return false;
  char path[32];
  Writer(path, sizeof path).text("/proc/").number(parent).text("/exe").finish();
  const sys::FileIdentity program = sys::file_identity(path);
  if (program == sys::FileIdentity{} || !(program == sys::file_identity(tool))) return false;
  Writer(path, sizeof path).text("/proc/").number(parent).text("/status").finish();
  return sys::seccomp_filters(path) == sys::inherited_filters();
}

report::Names names_of_last_report() {
  const uint64_t limit = g_options.name_after_ms * kMillisecond;
  if (limit == 0) return report::Names::kOwn;
  const Relatives known = relatives();
  const uint64_t lived = sys::monotonic_time() - report::g_host.started_monotonic;
  if (lived < limit && has_traced_parent(known.parent)) return report::Names::kLeft;
  return has_forked() || known.children_faults != 0 ? report::Names::kTree : report::Names::kOwn;
}

}  // namespace mtrace::hook
