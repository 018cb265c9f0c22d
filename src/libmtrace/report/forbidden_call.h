// Whether the filters of system calls over the calling thread (base/filters.h) let it write a
// report.
#pragma once

namespace mtrace::report {

// The name of a call that a report needs and that would end the process, raise SIGSYS or be left
// to another process; nullptr: there is none. One that fails is none: then the report fails, too.
// Async-signal-safe; 25 KiB of stack.
const char* forbidden_call();

}  // namespace mtrace::report
