#include "life/environment.h"

#include <link.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/file.h"
#include "base/process.h"
#include "base/syscall.h"
#include "base/writer.h"
#include "format/attach_protocol.h"
#include "life/options.h"
#include "modules/c_library.h"
#include "modules/object.h"
#include "report/host.h"
#include "report/output.h"
#include "report/scratch.h"
#include "unwind/slow_walk.h"

namespace mtrace::life {

namespace {

constexpr char kFollow[] = "MTRACE_FOLLOW=";
constexpr size_t kCapacity = 8192;

char g_preload[kCapacity];
char g_follow[64];

constexpr size_t kMostStrings = 512;
// Strings that late_arguments() has copied.
struct Strings {
  char text[format::kMostAttachOptions];
  char* list[kMostStrings + 1];

  // Builds `list` from `size` bytes of strings in `text`, each ended by a zero byte.
  void number(size_t size) {
    size_t count = 0;
    text[sizeof text - 1] = '\0';
    for (size_t at = 0; at < size && count < kMostStrings; at += strlen(text + at) + 1) {
      list[count++] = text + at;
    }
    // Some programs write their state over their arguments ("nginx: worker process").
    const bool title = count > 0 && strchr(list[0], ' ') != nullptr;
    while (title && count > 1 && list[count - 1][0] == '\0') --count;
    list[count] = nullptr;
  }
};
Strings g_late_arguments;
Strings g_late_options;

bool absolute_preload(const char* value, const char* own_path) {
  Writer out(g_preload, sizeof g_preload);
  out.text(kPreload);
  bool changed = false;
  while (*value != '\0') {
    const size_t length = strcspn(value, " :");
    if (length != 0 && value[0] != '/' && is_own_token(value, length, own_path)) {
      out.text(own_path);
      changed = true;
    } else {
      out.bytes(value, length);
    }
    value += length;
    if (*value != '\0') out.put(*value++);
  }
  return out.finish() == 0 && changed;
}

}  // namespace

bool is_own_token(const char* token, size_t length, const char* own_path) {
  const char* own_name = strrchr(own_path, '/');
  own_name = own_name != nullptr ? own_name + 1 : own_path;
  size_t start = length;
  while (start > 0 && token[start - 1] != '/') --start;
  return length - start == strlen(own_name) && memcmp(token + start, own_name, length - start) == 0;
}

Arguments initial_arguments() {
  char** const words = modules::initial_words();
  if (words == nullptr) return {nullptr, environ};
  return {words + 1, words + 2 + reinterpret_cast<uintptr_t>(words[0])};
}

Arguments late_arguments(const char* options) {
  Strings& arguments = g_late_arguments;
  arguments.number(
      base::read_file("/proc/thread-self/cmdline", arguments.text, sizeof arguments.text));
  size_t size = 0;
  while (options[size] != '\0') {
    const size_t length = strlen(options + size) + 1;
    if (size + length > sizeof g_late_options.text) break;
    memcpy(g_late_options.text + size, options + size, length);
    size += length;
  }
  g_late_options.number(size);
  return {arguments.list, g_late_options.list};
}

void rewrite_environment(char** envp, const char* own_path, uint32_t pid) {
  // LD_PRELOAD cannot name a path that contains a separator.
  const bool nameable = own_path[0] == '/' && own_path[strcspn(own_path, " :")] == '\0';
  for (; envp != nullptr && *envp != nullptr; ++envp) {
    const char* entry = *envp;
    if (strncmp(entry, kPreload, sizeof kPreload - 1) == 0) {
      if (nameable && absolute_preload(entry + sizeof kPreload - 1, own_path)) *envp = g_preload;
    } else if (strncmp(entry, kFollow, sizeof kFollow - 1) == 0 &&
               strcmp(entry + sizeof kFollow - 1, "0") == 0) {
      Writer(g_follow, sizeof g_follow).text(kFollow).text("0:").number(pid).finish();
      *envp = g_follow;
    }
  }
}

bool is_follow_root(const char* follow, uint32_t pid) {
  return follow[1] == '\0' || report::number_at(follow + 2) == pid;
}

namespace {

char g_own_path[report::kPathCapacity];
char g_tool_path[report::kPathCapacity];

}  // namespace

const char* own_path() { return g_own_path; }

void learn_own_path() {
  modules::FoundObject found;
  // By its code: where segments leave holes, what is found is one segment.
  if (!modules::find_object(reinterpret_cast<uintptr_t>(&learn_own_path), &found)) return;
  unwind::g_own_code = {found.start, found.end - found.start};
  const char* name = found.map->l_name;
  Writer out(g_own_path, sizeof g_own_path);
  if (name[0] != '/') out.text(report::g_host.directory).put('/');
  out.text(name).finish();
}

const char* find_tool() {
  // valgrind ends a program that starts a process by clone(2) as the resolver is started.
  if (strcmp(g_options.resolver, "none") == 0 || base::on_valgrind()) return nullptr;
  const char* slash = strrchr(g_own_path, '/');
  const size_t directory = slash != nullptr ? slash - g_own_path : 0;
  const char* const beside[] = {"/memlog", "/../bin/memlog", "/../../bin/memlog"};
  if (g_options.resolver[0] != '\0') {
    Writer out(g_tool_path, sizeof g_tool_path);
    if (g_options.resolver[0] != '/') out.text(report::g_host.directory).put('/');
    out.text(g_options.resolver).finish();
    return g_tool_path;
  }
  for (const char* name : beside) {
    const bool fits =
        Writer(g_tool_path, sizeof g_tool_path).bytes(g_own_path, directory).text(name).finish() ==
        0;
    if (fits && base::is_executable(g_tool_path)) return g_tool_path;
  }
  return nullptr;
}

namespace {

constexpr size_t kMappings = 256 * 1024;  // bytes of a parent's /proc/PID/maps that are looked at
constexpr size_t kMostEnvironment = 4u << 20;  // bytes; the kernel allows less

// Whether holds(text, size) is true of a file of /proc/PID. The text ends with a zero byte.
template <typename Holds>
bool check_file(uint64_t pid, const char* name, size_t most, const Holds& holds) {
  const report::Scratch<char> text(most);
  if (!text) return false;
  char path[40];
  Writer(path, sizeof path).text("/proc/").number(pid).put('/').text(name).finish();
  return holds(text.get(), base::read_file(path, text.get(), most));
}

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
  return check_file(pid, "environ", kMostEnvironment, [&](const char* text, size_t size) {
    for (size_t at = 0; at < size; at += strlen(text + at) + 1) {
      if (strcmp(text + at, entry) == 0) return true;
    }
    return false;
  });
}

}  // namespace

Relatives relatives() {
  char text[1024];
  if (base::read_file("/proc/self/stat", text, sizeof text) == 0) return {};
  // "PID (NAME) STATE PPID ...": a name may hold anything.
  const char* name_end = strrchr(text, ')');
  const char* at = name_end != nullptr ? strchr(name_end, ' ') : nullptr;
  Relatives found;
  constexpr int kParent = 4;
  constexpr int kChildrenFaults = 11;
  for (int field = 2; at != nullptr && field <= kChildrenFaults; at = strchr(at + 1, ' ')) {
    const uint64_t value = report::number_at(at);
    ++field;
    if (field == kParent) found.parent = value;
    if (field == kChildrenFaults) found.children_faults = value;
  }
  return found;
}

bool is_traced(uint64_t pid) {
  const char* name = strrchr(own_path(), '/');
  return name != nullptr && check_file(pid, "maps", kMappings, [&](const char* text, size_t) {
           return has_line(text, name) && !has_line(text, "/memlog");
         });
}

bool parent_has_complained(const char* entry) {
  const uint64_t parent = relatives().parent;
  return parent != 0 && (entry == nullptr || was_started_with(parent, entry)) && is_traced(parent);
}

}  // namespace mtrace::life
