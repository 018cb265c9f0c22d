// A handler before libc's sigaction can be called: that may be another library's, which is not
// ready yet.
#pragma once

#include <cstdint>

// Where the kernel has a handler return to, with the flag of sigaction(2) that says so.
extern "C" [[gnu::visibility("hidden")]] void mtrace_return_from_signal();

namespace mtrace::sys {

inline constexpr uint64_t kRestorer = 0x04000000;

// Catches `signal` where its action is the default: `handler` is called with all signals blocked,
// on the alternate stack if there is one. False: it has another action, or cannot be caught.
bool catch_by_default(int signal, void (*handler)(int));

}  // namespace mtrace::sys
