// The words by which the calls of a running program come to the hooks, or go past them again.
//
// For each function of hooks.def and interfaces.def that the program calls: the symbol-table entry
// of its definition, by which whatever is bound or loaded later finds the hook; and each word of an
// object that is bound to the definition already. What is bound to another definition stays as it
// is. So do calls of an allocator's own functions inside the allocator: some give it memory that no
// program sees.
#pragma once

#include <cstddef>

#include "format/attach_protocol.h"

namespace mtrace::hook {

// To the hooks (`attach`), or back to the real functions. Their number; where that is more than
// format::kMostPatches there was no room for all. After find_next_functions(); for moments in which
// no thread loads or unloads.
size_t list_patches(bool attach, format::Patch* patches);
// The same for the functions of interfaces.def alone, to their hooks: those of hooks.def are found
// by the loader where the program was started with this library.
size_t list_interface_patches(format::Patch* patches);

}  // namespace mtrace::hook
