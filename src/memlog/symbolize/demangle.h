// Names as the compiler mangled them -> names as the source has them.
#pragma once

#include <string>

namespace mtrace::symbolize {

// C++ (Itanium ABI) and Rust (legacy and v0) names with their parameters; glibc's internal aliases
// (__GI_puts) as the public name; every other name, and one that only looks mangled, as it is.
std::string demangle(const char* name);

}  // namespace mtrace::symbolize
