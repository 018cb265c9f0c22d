// Runs the memlog tool to resolve the names in a text, in a process that the host cannot see, as a
// report's resolver does (report/resolver_process.h). The caller waits.
#pragma once

namespace mtrace::report {

// Runs `memlog decode` with standard input from `raw`, which is read from its beginning, and
// standard output to `named`. True: the tool succeeded and has written something. Waits at most
// five seconds, then kills the tool. Thread-safe; leaves errno and the signal mask alone.
bool decode(int raw, int named);

}  // namespace mtrace::report
