// The known facts about one function at one address.
#pragma once

#include <string>
#include <vector>

namespace mtrace::symbolize {

struct SourceFrame {
  std::string function;  // demangled; empty: unknown
  std::string source;    // FILE:LINE, file without directories; empty: unknown
  std::string path;      // of the file, as compiled; empty: unknown
};

// Innermost first; each frame but the last is inlined into the next. Empty: nothing known.
using SourceFrames = std::vector<SourceFrame>;

}  // namespace mtrace::symbolize
