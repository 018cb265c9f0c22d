// Option names, and the nearest match for a misspelt one. Async-signal-safe.
#pragma once

#include <cstddef>

namespace mtrace::hook {

// `name` has `length` bytes and need not be terminated.
bool looks_like_option(const char* name, size_t length);
bool is_option(const char* name, size_t length);
// Returns the option with the smallest Damerau-Levenshtein distance to `name`, at most a third of
// the option's letters (without the prefix; at least 1); nullptr: none. If `name` is the beginning
// of an option, at least three letters, the distance is 1.
const char* nearest_option(const char* name, size_t length);

}  // namespace mtrace::hook
