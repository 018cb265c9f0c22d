// Which of the library's calls end the process under filters from before its start: assumed first,
// then tried. See find_inherited_filters().
#pragma once

#include <cstdint>

namespace mtrace::sys {

// Before the trial: the library's calls count as ones that end the process, except those that every
// program makes at its start and those needed to write a report in place.
void assume_inherited_calls();

enum class Tried {
  kNot,      // no child could be made: the assumptions stay
  kAllowed,  // no call ends the process
  kSomeEnd,
};
// Tries the calls in children with a copy of the memory. Only where clone(2) is known not to end
// the process. For other threads the assumptions hold until the trial is over.
Tried try_inherited_calls();

// Whether the call ends the process, or counts as one that does.
bool ends_by_inheritance(uint32_t number);

}  // namespace mtrace::sys
