// MTRACE_MAX_MEMORY: a process whose tables have passed this size samples from then on.
#pragma once

namespace mtrace::hook {

// Sets the limit, after read_options() and before anything is counted. Without the option: none.
void limit_memory();

}  // namespace mtrace::hook
