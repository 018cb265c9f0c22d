// Retires the stacks of unloaded modules. Thread-safe, async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger/stack_table.h"
#include "modules/modules.h"

namespace mtrace::hook {

// Cheap. True: a module was unloaded since retire_unloaded() last ran. libc closes its own plug-ins
// from inside; only a walk that meets another module in their place notices that.
extern uint32_t g_seen_epoch;
inline bool modules_changed() { return unwind::unload_epoch() != load(g_seen_epoch); }
// The loader allocates 1.1 KiB with calloc for an object's description before it maps the object
// (glibc 2.36). The vectors of thread-local blocks, one for each new thread, are smaller.
inline constexpr size_t kLeastDescription = 1024;
extern uintptr_t g_loader_begin;
extern size_t g_loader_size;  // bytes; 0: not known
inline bool loads_an_object(size_t size, const void* caller) {
  return size >= kLeastDescription &&
         reinterpret_cast<uintptr_t>(caller) - g_loader_begin < g_loader_size;
}
void find_loader();
// Retires unloaded modules before the loader maps an object, perhaps in the place of one whose
// dlclose no hook saw (looked up in libc, or libc's own).
void look_for_unloaded();

// Retires the stacks of unloaded modules, so that equal addresses make new stacks from now on.
void retire_unloaded();
// Whether every frame of a retired stack lies in the same file at the same place again.
bool modules_came_back(const ledger::StackRecord& stack);

}  // namespace mtrace::hook
