// Turns mangled names into names as in the source.
#pragma once

#include <string>

namespace mtrace::symbols {

// Demangles C++ (Itanium ABI) and Rust (legacy and v0) names, with parameters. Turns glibc's
// internal aliases (__GI_puts) into the public name. Returns every other name unchanged, also one
// that only looks mangled.
std::string demangle(const char* name);

}  // namespace mtrace::symbols
