// The wait for memlog (MTRACE_HOLD_EXIT), which looks for lost blocks meanwhile (memlog run
// --unreachable): at the exit of the process before exit handlers and destructors take away what
// holds them, after these if memlog wants it, and whenever the program asks for a leak check.
//
// None of these is async-signal-safe. All return at once without the option, without a ledger in a
// file that has a name, and in a child of vfork.
#pragma once

#include <cstdint>

#include "next/next_functions.h"

namespace mtrace::hook {

// Waits until memlog has looked at the process or is gone, once; a thread that comes meanwhile
// waits, too.
void hold_exit();
// The same after exit handlers and destructors, if memlog wants it.
void hold_after_exit();

// Waits until memlog has looked. Returns how many blocks it found definitely lost;
// format::kLedgerUnchecked: nobody looked.
uint32_t check_leaks();
// memlog is not to look at the exit any more.
void skip_exit_hold();

// The program's main, or a function that calls it and then hold_exit() if the option is given.
MainFunction* held_main(MainFunction* main);

}  // namespace mtrace::hook
