// Waits for memlog (MTRACE_HOLD_EXIT), which meanwhile searches for lost blocks (memlog run
// --unreachable): at exit, before exit handlers and destructors drop the pointers to blocks, and
// after these if memlog requests it.
//
// None of these is async-signal-safe. All return at once without the option, without a ledger in a
// file that has a name, and in a child of vfork.
#pragma once

#include "next/next_functions.h"

namespace mtrace::life {

// Waits until memlog has searched the process or is gone, once. Other threads that call it
// meanwhile wait, too.
void hold_exit();
// Waits once more after exit handlers and destructors, if memlog has requested it.
void hold_after_exit();

// Returns `main` or, with the option, a function that calls `main` and then hold_exit().
next::MainFunction* held_main(next::MainFunction* main);

}  // namespace mtrace::life
