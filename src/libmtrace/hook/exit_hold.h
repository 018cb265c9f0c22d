// The wait for memlog at the exit of the process (MTRACE_HOLD_EXIT): memlog run --unreachable looks
// for lost blocks before exit handlers and destructors take away what holds them.
#pragma once

#include "hook/next_functions.h"

namespace mtrace::hook {

// Waits until memlog has looked at the process or is gone, once; a thread that comes meanwhile
// waits, too. Returns at once without the option, without a ledger in a file, and in a child of
// vfork. Not async-signal-safe.
void hold_exit();

// The program's main, or a function that calls it and then hold_exit() if the option is given.
MainFunction* held_main(MainFunction* main);

}  // namespace mtrace::hook
