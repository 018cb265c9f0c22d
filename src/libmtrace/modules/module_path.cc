#include "modules/module_path.h"

#include <string.h>
#include <sys/auxv.h>

#include "base/probe.h"
#include "base/process.h"
#include "format/memlog.h"

namespace mtrace::unwind {
namespace {

bool is_vdso(const char* name) {
  return strchr(name, '/') == nullptr && strncmp(name, "linux-", 6) == 0;
}

// Path of the main program, where /proc cannot be read.
void executed_path(char* path) {
  const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (executed != nullptr && executed[0] == '/' && strlen(executed) < kMaxPath) {
    memcpy(path, executed, strlen(executed) + 1);
  }
}

// Leaves the path "" where it is unknown. The loader's name of the main program is empty, that of
// the vdso has no slash.
void look_for_path(const Object& object, PathScratch* scratch) {
  char* const name = scratch->name;
  char* const path = scratch->path;
  path[0] = '\0';
  if (object.name == 0 || !sys::read_string(object.name, name, sizeof scratch->name)) return;
  if (name[0] == '\0') {
    if (sys::program_path(path, kMaxPath) == 0) executed_path(path);
    return;
  }
  if (is_vdso(name)) {
    memcpy(path, format::kVdsoPath, sizeof format::kVdsoPath);
    return;
  }
  size_t length = name[0] == '/' ? 0 : sys::working_directory(path, kMaxPath);
  const char* relative = name;
  if (length != 0) {
    if (length > 1) path[length++] = '/';
    while (strncmp(relative, "./", 2) == 0) relative += 2;
  }
  const size_t size = strlen(relative) + 1;
  if (size <= kMaxPath - length) {
    memcpy(path + length, relative, size);
  } else {
    path[0] = '\0';
  }
}

}  // namespace

void find_path(const Object& object, PathScratch* scratch) {
  look_for_path(object, scratch);
  // A frame in a report needs a name; by its build-id the file may still be found.
  if (scratch->path[0] == '\0') memcpy(scratch->path, "?", 2);
}

bool same_name(const char* name, const char* path) {
  if (name[0] == '\0' || is_vdso(name)) return true;  // never unloaded
  while (strncmp(name, "./", 2) == 0) name += 2;
  const size_t length = strlen(name);
  const size_t known = strlen(path);
  return length <= known && strcmp(path + known - length, name) == 0;
}

}  // namespace mtrace::unwind
