// This process's parent and children, as read from /proc. Async-signal-safe.
#pragma once

#include <cstdint>

namespace mtrace::hook {

// Fields of /proc/self/stat (proc(5)).
struct Relatives {
  uint64_t parent = 0;           // 0: in another namespace, or not known
  uint64_t children_faults = 0;  // minor page faults of the children that were waited for
};
Relatives relatives();

// Whether the library is mapped into the process, and the memlog program is not: memlog may have
// the library and does not count.
bool is_traced(uint64_t pid);

// Whether this process's parent is traced and was started with the same entry of the environment
// ("NAME=value"; nullptr: any), so that it has written what is wrong with the entry. False also
// when that is not known.
bool parent_has_told(const char* entry);

}  // namespace mtrace::hook
