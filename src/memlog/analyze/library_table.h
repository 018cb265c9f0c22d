// The built-in table of library code, in the format of analyze/library_code.h.
#pragma once

namespace mtrace::analyze {

extern const char kAllocators[];
extern const char kInternals[];
extern const char kStartUp[];
extern const char kSystem[];

}  // namespace mtrace::analyze
