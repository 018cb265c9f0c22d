// The names of the options, and which of them somebody meant who wrote another. Async-signal-safe.
#pragma once

#include <cstddef>

namespace mtrace::hook {

// `name` has `length` bytes and need not be terminated.
bool looks_like_option(const char* name, size_t length);
bool is_option(const char* name, size_t length);
// The option whose name is at most a third of its letters, without the prefix, away from `name`
// (left out, added, another, two swapped); nullptr: none is. Also the whole name when `name` lacks
// its end.
const char* nearest_option(const char* name, size_t length);

}  // namespace mtrace::hook
