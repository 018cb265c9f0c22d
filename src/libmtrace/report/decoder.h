// Has the memlog tool put names into a text, outside the host and unseen by it, as a report's
// resolver does (report/resolver.h), but at once: the caller waits.
#pragma once

namespace mtrace::report {

// Runs `memlog decode` with standard input from `raw`, which is read from its beginning, and
// standard output to `named`. True: it went well and has written something. Waits at most five
// seconds, then ends the tool. Thread-safe; leaves errno and the signal mask alone.
bool decode(int raw, int named);

}  // namespace mtrace::report
