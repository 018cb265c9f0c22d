// Lists the words to change so that the calls of a running program reach the hooks, or bypass them
// again.
//
// For each function of hooks.def and interfaces.def that the program has: the symbol-table entry of
// its definition, through which later bindings find the hook, and each word of an object that is
// already bound to the definition. Words bound to another definition stay as they are. So do an
// allocator's calls of its own functions: some allocate memory that the program never sees.
#pragma once

#include <cstddef>

#include "format/attach_protocol.h"

namespace mtrace::hook {

// Lists the words that lead calls to the hooks (`attach`), or back to the real functions. Returns
// their number; above format::kMostPatches, `patches` has no room for all. Call it after
// find_next_functions(), while no thread loads or unloads objects.
size_t list_patches(bool attach, format::Patch* patches);
// Lists the words that lead calls of the functions in interfaces.def to the hooks, in a program
// that was started with this library: there the loader binds the functions of hooks.def.
size_t list_interface_patches(format::Patch* patches);

}  // namespace mtrace::hook
