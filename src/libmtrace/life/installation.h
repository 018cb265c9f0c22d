// Where this library lies, and the memlog tool that belongs to it.
#pragma once

namespace mtrace::hook {

// After report::learn_host(). `inside`: something that lies in this library.
void learn_own_path(const void* inside);
// Absolute; "" when unknown.
const char* own_path();

// The tool that fills in names, nullptr: none. What MTRACE_RESOLVER says; otherwise the first that
// can be executed of: beside the library, ../bin and ../../bin from there, the place of the
// installation. Never looked for by PATH or in the working directory.
const char* find_tool();

}  // namespace mtrace::hook
