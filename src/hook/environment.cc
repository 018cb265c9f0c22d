#include "hook/environment.h"

#include <cstddef>
#include <cstring>

#include "base/file.h"
#include "base/writer.h"

namespace mtrace::hook {
namespace {

constexpr char kPreload[] = "LD_PRELOAD=";
constexpr char kFollow[] = "MTRACE_FOLLOW=";
constexpr size_t kCapacity = 8192;

char g_preload[kCapacity];
char g_follow[64];

// Same last component, and ours is what the loader found by it.
bool is_own_token(const char* token, size_t length, const char* own_path) {
  const char* own_name = strrchr(own_path, '/');
  own_name = own_name != nullptr ? own_name + 1 : own_path;
  size_t start = length;
  while (start > 0 && token[start - 1] != '/') --start;
  return length - start == strlen(own_name) && memcmp(token + start, own_name, length - start) == 0;
}

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

void rewrite_environment(char** envp, const char* own_path, uint32_t pid) {
  // A path with a separator in it could not be written down.
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
  if (follow[1] == '\0') return true;
  uint32_t root = 0;
  for (const char* p = follow + 2; *p >= '0' && *p <= '9'; ++p) root = root * 10 + (*p - '0');
  return root == pid;
}

}  // namespace mtrace::hook
