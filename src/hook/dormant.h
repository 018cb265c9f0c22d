// Programs that have the library and are not traced.
#pragma once

namespace mtrace::hook {

// The program is the memlog tool.
bool is_memlog();
// Why this program is not traced; nullptr: it is. After read_options() and report::learn_host().
const char* why_dormant();

}  // namespace mtrace::hook
