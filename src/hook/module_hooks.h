// What the unloading of modules means for stacks. Thread-safe, async-signal-safe.
#pragma once

#include "ledger/stack_table.h"
#include "unwind/modules.h"

namespace mtrace::hook {

// Cheap: whether a module has gone since retire_unloaded() last ran. libc closes its own plug-ins
// from inside, which only a walk notices that meets another module in their place.
extern uint32_t g_seen_epoch;
inline bool modules_changed() { return unwind::unload_epoch() != load(g_seen_epoch); }
// Retires the stacks of modules that have gone, so that equal addresses mean other stacks now.
void retire_unloaded();
// Whether every frame of a retired stack lies in the same file at the same place again.
bool modules_came_back(const ledger::StackRecord& stack);

}  // namespace mtrace::hook
