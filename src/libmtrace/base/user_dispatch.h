// Syscall user dispatch (prctl(2), PR_SET_SYSCALL_USER_DISPATCH): while a byte of the program's
// says so, the kernel raises SIGSYS in place of each system call of a thread, and the program's
// handler decides. Calls from one range of addresses are exempt. The program would take a call of
// the library's for its own, so the library makes none then: see base/filters.h.
//
// The setting is per thread. Threads and processes that a thread creates begin without it.
// Async-signal-safe.
#pragma once

namespace mtrace::sys {

// Records that the kernel is about to hand over the library's calls in this thread (`on`), or does
// so no longer. `selector` nullptr and `on`: all calls, without a byte.
void set_user_dispatch(bool on, const volatile char* selector);
bool has_user_dispatch();
// Whether the kernel would hand over a call of the library now.
bool is_dispatched();

}  // namespace mtrace::sys
