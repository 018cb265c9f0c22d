// The known facts about one function at one address.
#pragma once

#include <vector>

#include "profile/name.h"

namespace mtrace::symbolize {

struct SourceFrame {
  profile::Name function;  // demangled; empty: unknown
  profile::Name source;    // FILE:LINE, file without directories; empty: unknown
  profile::Name path;      // of the file, as compiled; empty: unknown
};

// Innermost first; each frame but the last is inlined into the next. Empty: nothing known.
using SourceFrames = std::vector<SourceFrame>;

}  // namespace mtrace::symbolize
