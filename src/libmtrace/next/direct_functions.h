// Functions in place of those of musl that allocate by another one's symbol: that call would come
// back to a hook, which would find libc in place of the program's code as its caller.
#pragma once

#include "next/next_functions.h"

namespace mtrace::hook {

// Puts them into `found` where that has musl's calloc, memalign, posix_memalign and valloc.
void lead_past_hooks(NextFunctions& found);

}  // namespace mtrace::hook
