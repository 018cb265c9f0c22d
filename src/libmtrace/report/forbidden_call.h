// Whether the calling thread's filters of system calls (base/filters.h) let it write a report.
#pragma once

namespace mtrace::report {

// The name of a system call that a report needs and that would end the process, raise SIGSYS or be
// left to another process; nullptr: none. A call that would only fail does not count: the report
// then fails, too. Async-signal-safe; 25 KiB of stack.
const char* forbidden_call();

}  // namespace mtrace::report
