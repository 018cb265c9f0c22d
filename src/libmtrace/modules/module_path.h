// Names of loaded objects: from the loader's, which are as the program gave them, to absolute
// paths.
#pragma once

#include "modules/object.h"

namespace mtrace::unwind {

inline constexpr size_t kMaxPath = 4096;

// What naming an object needs: too much for a small stack.
struct PathScratch {
  char name[kMaxPath];
  char path[kMaxPath];
};

// Absolute path of a loaded object into scratch->path; empty when it has none. Relative names are
// taken from the working directory of this moment. Async-signal-safe; never faults.
void find_path(const Object& object, PathScratch* scratch);

// Whether the loader's name of an object is the one that `path` was made from.
bool same_name(const char* name, const char* path);

}  // namespace mtrace::unwind
