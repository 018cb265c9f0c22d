// Whether the program's calls come to this library's malloc at all.
#pragma once

namespace mtrace::hook {

// Looks whose malloc the program and its libraries find, for report/coverage.h. After
// find_next_functions(). `late`: the calls will be led here.
void find_entry_points(bool late);

// One line on stderr where the program defines malloc itself.
void say_when_hidden();

}  // namespace mtrace::hook
