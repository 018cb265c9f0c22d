// MTRACE_MAX_MEMORY: a process whose tables have passed it samples from then on.
#pragma once

namespace mtrace::hook {

// With the options, before anything is counted. Without the option: no limit.
void limit_memory();

}  // namespace mtrace::hook
