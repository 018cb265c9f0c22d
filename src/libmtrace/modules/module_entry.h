// An entry of the list of modules (modules/modules.h): its memory, its comparison with loaded
// objects, and its copy in the file behind the tables, for readers that outlive this process.
// Async-signal-safe.
#pragma once

#include <atomic>
#include <cstddef>

#include "format/ledger.h"
#include "modules/modules.h"
#include "modules/object.h"

namespace mtrace::modules {

// Memory that is never given back: zeroed, 16-byte aligned; `size` below 64 KiB. nullptr: the
// kernel gives no more. Lock-free.
void* module_memory(size_t size);

// Written before it is published, then constant, except for `died` and `announced`.
struct Entry {
  Module module;
  Object object;
  std::atomic<uint32_t> announced;  // epoch of the last death that forget_unloaded() reported
  std::atomic<format::LedgerModule*> logged;
  std::atomic<uintptr_t> name;  // the loader's, as of the last time that the object was compared
  uint64_t path_number;         // equal for equal paths
};

// Makes an entry that is not in the list yet. nullptr: no memory.
Entry* make_entry(const Object& object);
// make_entry() without system calls, for the file of `known` loaded again at its place: `now`.
// nullptr also if the file has no build-id, or if the loader's name is not the path of `known`.
Entry* make_entry_again(const Entry& known, const Object& now);

inline uint32_t died(const Module& module) {
  return __atomic_load_n(&module.died, __ATOMIC_ACQUIRE);
}
// False: `died` was not `from`; another thread was first.
bool set_died(Entry* entry, uint32_t from, uint32_t to);

bool same_file(const Module& a, const Module& b);
// Whether the object `now` is the file of `entry` at the same place: by build-id; a file without
// one by its name. Reads `now` directly: for an object that a walk has come to, which stays loaded
// while one of its functions is on the stack.
bool same_object(const Entry& entry, const Object& now);
// same_object() for what is loaded now, which another thread may be unloading meanwhile.
bool still_loaded(Entry& entry);
// still_loaded(), but without system calls if the loader uses the same string for the name. Before
// the loader maps an object over one that has gone, look_for_unloaded() finds the place empty.
bool seems_loaded(Entry& entry);

// Logs a module and its number in the list. nullptr: there is no file, or no room in it.
format::LedgerModule* log_module(const Module& module, uint32_t number);

// Copies the module's present `died` to the log. Called after a module is logged and after its
// `died` changes, so that the later of the two threads writes the final value.
void log_death(const std::atomic<format::LedgerModule*>& logged, const Module& module);

}  // namespace mtrace::modules
