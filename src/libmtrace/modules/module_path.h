// Absolute paths of loaded objects, made from the loader's names, which are as the program gave
// them.
#pragma once

#include "modules/object.h"

namespace mtrace::unwind {

inline constexpr size_t kMaxPath = 4096;

// Buffers of find_path(), too large for a small stack.
struct PathScratch {
  char name[kMaxPath];
  char path[kMaxPath];
};

// Writes the absolute path of a loaded object to scratch->path; "?" when it is unknown. Relative
// names are taken from the present working directory. Async-signal-safe; never faults.
void find_path(const Object& object, PathScratch* scratch);

// Whether the loader's name of an object is the one that `path` was made from.
bool same_name(const char* name, const char* path);

}  // namespace mtrace::unwind
