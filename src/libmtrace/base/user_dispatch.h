// Syscall user dispatch (prctl(2), PR_SET_SYSCALL_USER_DISPATCH): while a byte of the program's
// says so, the kernel makes none of a thread's system calls but raises SIGSYS, and the program's
// handler does as it likes. Calls from one range of addresses are exempt. A call of the library's
// would be taken for the program's, so none is made then: see base/filters.h.
//
// A thread has it for itself. Threads and processes that it creates begin without.
// Async-signal-safe.
#pragma once

namespace mtrace::sys {

// The calling thread's calls from the library are about to be handed over, or no longer are:
// `selector` nullptr and `on`: all of them.
void set_user_dispatch(bool on, const volatile char* selector);
bool has_user_dispatch();
// The kernel would hand over a call of the library's now.
bool is_dispatched();

}  // namespace mtrace::sys
