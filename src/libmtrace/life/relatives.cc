#include "life/relatives.h"

#include <cstddef>
#include <cstring>

#include "base/file.h"
#include "base/process.h"
#include "base/syscall.h"
#include "base/writer.h"
#include "life/environment.h"

namespace mtrace::hook {
namespace {

constexpr size_t kMappings = 256 * 1024;  // bytes of a parent's /proc/PID/maps that are looked at
constexpr uint64_t kMostEnvironment = 4u << 20;  // bytes; the kernel allows less

// Whether `text` has a line that ends in `name`.
bool has_line(const char* text, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = strstr(text, name); at != nullptr; at = strstr(at + length, name)) {
    if (at[length] == '\n') return true;
  }
  return false;
}

// Whether the environment with which the process was started has the entry.
bool was_started_with(uint64_t pid, const char* entry) {
  char text[512];
  Writer(text, sizeof text).text("/proc/").number(pid).text("/environ").finish();
  const long file = sys::open_to_read(text);
  if (sys::failed(file)) return false;
  const size_t length = strlen(entry) + 1;  // with the zero byte that ends it
  size_t same = 0;       // bytes of the entry that the current string begins with
  bool differs = false;  // the current string does
  bool found = false;
  long got = 0;
  for (uint64_t at = 0; !found && at < kMostEnvironment; at += got) {
    got = sys::read_at(static_cast<int>(file), text, sizeof text, at);
    if (got <= 0) break;
    for (long i = 0; i < got && !found; ++i) {
      differs = differs || same == length || text[i] != entry[same];
      ++same;
      found = !differs && same == length;
      if (text[i] != '\0') continue;
      same = 0;
      differs = false;
    }
  }
  sys::close_file(static_cast<int>(file));
  return found;
}

}  // namespace

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

bool parent_has_told(const char* entry) {
  const uint64_t parent = relatives().parent;
  return parent != 0 && (entry == nullptr || was_started_with(parent, entry)) && is_traced(parent);
}

}  // namespace mtrace::hook
