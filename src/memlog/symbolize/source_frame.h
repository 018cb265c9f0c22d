// What is known about one function at one address.
#pragma once

#include <string>
#include <vector>

namespace mtrace::symbolize {

struct SourceFrame {
  std::string function;  // demangled; empty: unknown
  std::string source;    // FILE:LINE, the file without its directories; empty: unknown
};

// Innermost first; all but the last are inlined into the next. Empty: nothing is known.
using SourceFrames = std::vector<SourceFrame>;

}  // namespace mtrace::symbolize
