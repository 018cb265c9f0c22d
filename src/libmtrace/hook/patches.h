// The words by which the calls of a running program come to the hooks, or go past them again.
//
// For each function of hooks.def that the program calls: the symbol-table entry of its definition,
// by which whatever is bound or loaded later finds the hook; and each word of an object that is
// bound to the definition already. What is bound to another definition stays as it is.
#pragma once

#include <cstddef>

#include "format/attach_protocol.h"

namespace mtrace::hook {

// To the hooks (`attach`), or back to the real functions. Their number; where that is more than
// format::kMostPatches there was no room for all. After find_next_functions(); for moments in which
// no thread loads or unloads.
size_t list_patches(bool attach, format::Patch* patches);

}  // namespace mtrace::hook
