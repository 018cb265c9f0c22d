// An entry of the list of modules (modules/modules.h), and how it is known again.
// Async-signal-safe.
#pragma once

#include <atomic>

#include "modules/module_log.h"
#include "modules/modules.h"
#include "modules/object.h"

namespace mtrace::unwind {

// Written before it is published, then constant, except for `died` and `announced`.
struct Entry {
  Module module;
  Object object;
  std::atomic<uint32_t> announced;  // the last death of it that forget_unloaded has reported
  std::atomic<format::LedgerModule*> logged;
  std::atomic<uintptr_t> name;  // the loader's, as of the last time that the object was compared
  uint64_t path_number;         // equal for equal paths
};

// Not in the list yet. nullptr: no memory.
Entry* make_entry(const Object& object);
// The same for a file that is loaded again, at the place that `known` was made for: without system
// calls. `now`: as the loader tells. nullptr, too, where build-id and name do not tell that it is.
Entry* make_entry_again(const Entry& known, const Object& now);

inline uint32_t died(const Module& module) {
  return __atomic_load_n(&module.died, __ATOMIC_ACQUIRE);
}
// False: `died` was not `from`; another thread was first.
bool set_died(Entry* entry, uint32_t from, uint32_t to);

bool same_file(const Module& a, const Module& b);
// Whether what is loaded at `now` is the file that `entry` was made for: by build-id; a file
// without one by its name. Reads `now` directly: for an object that a walk has met, which stays
// loaded while one of its functions is on the stack.
bool same_object(const Entry& entry, const Object& now);
// The same of what is loaded now, which another thread may be unloading meanwhile.
bool still_loaded(Entry& entry);
// The same, but without system calls for an object that the loader calls by the same string. Before
// it maps another one over an object that has gone, look_for_unloaded() finds the place empty.
bool seems_loaded(Entry& entry);

}  // namespace mtrace::unwind
