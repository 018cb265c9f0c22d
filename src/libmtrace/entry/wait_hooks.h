// What the hooks on waits have to know of the children that the program makes.
#pragma once

namespace mtrace::hook {

// Before a clone(2) with these flags. Async-signal-safe.
void note_clone(unsigned long flags);

}  // namespace mtrace::hook
