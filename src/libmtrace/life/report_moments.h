// MTRACE_REPORT_AT: reports when the process is at its peak, has grown, or is about to use up its
// memory.
#pragma once

namespace mtrace::hook {

// Has reports written as the option wants, after read_options() and before anything is counted.
void watch_for_moments();

}  // namespace mtrace::hook
