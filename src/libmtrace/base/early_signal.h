// Installs a signal handler before libc's sigaction can be called: sigaction may be another
// library's, which is not initialised yet.
#pragma once

namespace mtrace::sys {

// Installs `handler` if `signal` has the default action. It runs with all signals blocked, on the
// alternate stack if there is one. False: there is another action, or no way to catch the signal.
bool catch_by_default(int signal, void (*handler)(int));

}  // namespace mtrace::sys
