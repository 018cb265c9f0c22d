// What filters of system calls from before the start of the process make of the library's calls.
// See find_inherited_filters().
#pragma once

#include <cstdint>

namespace mtrace::sys {

// Tries them, in children with a copy of the memory. True: some would end the process.
bool try_inherited_calls();
// One of those.
bool ends_by_inheritance(uint32_t number);

}  // namespace mtrace::sys
