// What the unloading of modules means for stacks. Thread-safe, async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger/stack_table.h"
#include "modules/modules.h"

namespace mtrace::hook {

// Cheap: whether a module has gone since retire_unloaded() last ran. libc closes its own plug-ins
// from inside, which only a walk notices that meets another module in their place.
extern uint32_t g_seen_epoch;
inline bool modules_changed() { return unwind::unload_epoch() != load(g_seen_epoch); }
// What the loader allocates with calloc before it maps an object: 1.1 KiB for its description
// (glibc 2.36). Less are the vectors of thread-local blocks, one for each new thread.
inline constexpr size_t kLeastDescription = 1024;
extern uintptr_t g_loader_begin;
extern size_t g_loader_size;  // bytes; 0: not known
inline bool loads_an_object(size_t size, const void* caller) {
  return size >= kLeastDescription &&
         reinterpret_cast<uintptr_t>(caller) - g_loader_begin < g_loader_size;
}
void find_loader();
// Before the object is mapped: another may have gone from its place by a dlclose that no hook saw
// (one that was looked up in libc, or libc's own).
void look_for_unloaded();

// Retires the stacks of modules that have gone, so that equal addresses mean other stacks now.
void retire_unloaded();
// Whether every frame of a retired stack lies in the same file at the same place again.
bool modules_came_back(const ledger::StackRecord& stack);

}  // namespace mtrace::hook
