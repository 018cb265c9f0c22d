// Programs that have the library and are not traced.
#pragma once

namespace mtrace::hook {

// The program is the memlog tool.
bool is_memlog();
// Why this program is not traced; nullptr: it is. After read_options() and report::learn_host().
const char* why_dormant();

// The program has a sanitizer's allocator, which is left alone: what it would show are the
// sanitizer's own doings, and what stands between it and the program could show in its findings.
// A sentence without subject that says which; nullptr: it has none. After find_next_functions().
const char* sanitizer();
// A line on stderr where sanitizer() has found one.
void say_when_aside();

}  // namespace mtrace::hook
