// What filters of system calls from before the start of the process make of the library's calls.
// See find_inherited_filters().
#pragma once

#include <cstdint>

namespace mtrace::sys {

// Until they are tried: all calls but those that every program has made by the time it starts, and
// those without which nothing can be written, count as ones that end the process.
void assume_inherited_calls();

enum class Tried {
  kNot,      // no child could be made: what was assumed stays
  kAllowed,  // none ends the process
  kSomeEnd,
};
// Tries them, in children with a copy of the memory. Only where clone(2) is known not to end the
// process. Other threads may make calls meanwhile: for them what was assumed holds until the end.
Tried try_inherited_calls();

// A call that ends the process, or counts as one.
bool ends_by_inheritance(uint32_t number);

}  // namespace mtrace::sys
