// A handler before libc's sigaction can be called: that may be another library's, which is not
// ready yet.
#pragma once

namespace mtrace::sys {

// Catches `signal` where its action is the default: `handler` is called with all signals blocked,
// on the alternate stack if there is one. False: it has another action, or cannot be caught.
bool catch_by_default(int signal, void (*handler)(int));

}  // namespace mtrace::sys
