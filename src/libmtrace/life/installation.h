// Where this library lies, and the memlog tool that belongs to it.
#pragma once

namespace mtrace::hook {

// Finds the library's path and code. After report::learn_host().
void learn_own_path();
// The library's path, absolute; "" when unknown.
const char* own_path();

// Path of memlog, which fills in names; nullptr: none. MTRACE_RESOLVER, or else the first
// executable of: beside the library, ../bin and ../../bin from there, the place of the
// installation. Never looked up in PATH or in the working directory.
const char* find_tool();

}  // namespace mtrace::hook
