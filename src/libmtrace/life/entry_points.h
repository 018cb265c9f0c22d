// Whether the program's calls reach this library's malloc.
#pragma once

namespace mtrace::hook {

// Finds out whose malloc the program and its libraries call, for report/coverage.h. After
// find_next_functions(). `late`: memlog attach will patch the calls to lead here.
void find_entry_points(bool late);

// Writes a line to stderr if the program defines malloc, or a tool of valgrind replaces it.
void say_when_hidden();

}  // namespace mtrace::hook
