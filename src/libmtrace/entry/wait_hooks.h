// Tells the hooks on waits which children the program makes.
#pragma once

namespace mtrace::entry {

// Call it before a clone(2) with these flags. Async-signal-safe.
void note_clone(unsigned long flags);

}  // namespace mtrace::entry
