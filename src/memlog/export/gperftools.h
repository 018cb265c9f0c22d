// The heap profile of gperftools with symbols, for google-pprof and jeprof.
#pragma once

#include <string>

#include "export/stacks.h"

namespace mtrace::exporting {

// Returns the text that google-pprof --raw writes: a section with the symbols, then the profile,
// then the modules. "In use" is the stacks' number, which must be bytes, with the blocks if that is
// the change. "Allocated" is from the report, or else equal to "in use". Writes "- -" for "--" in a
// name.
std::string gperftools(const Stacks& stacks, const analyze::Table& table);

}  // namespace mtrace::exporting
