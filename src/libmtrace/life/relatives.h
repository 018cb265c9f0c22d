// The process that started this one, and its children, as /proc tells. Async-signal-safe.
#pragma once

#include <cstdint>

namespace mtrace::hook {

// What /proc/self/stat says (proc(5)).
struct Relatives {
  uint64_t parent = 0;           // 0: in another namespace, or not known
  uint64_t children_faults = 0;  // minor page faults of the children that were waited for
};
Relatives relatives();

// Whether the library is mapped into the process. Of memlog, which may have it and does not count,
// the program is mapped as well.
bool is_traced(uint64_t pid);

// Whether this process's parent, which is traced, was started with the same entry of the
// environment
// ("NAME=value"; nullptr: any) and has told what is wrong with it. False also when that is not
// known.
bool parent_has_told(const char* entry);

}  // namespace mtrace::hook
