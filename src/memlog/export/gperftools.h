// The heap profile of gperftools, with names in front: for google-pprof and jeprof.
#pragma once

#include <string>

#include "export/stacks.h"

namespace mtrace::exporting {

// As google-pprof --raw writes it: a section with the names of addresses, then the profile, then
// where modules are. In use is the stacks' number, which must be bytes, with its blocks where that
// is the change; allocated is what the report tells, or else what is in use. A "--" in a name is a
// "- -".
std::string gperftools(const Stacks& stacks, const analyze::Table& table);

}  // namespace mtrace::exporting
