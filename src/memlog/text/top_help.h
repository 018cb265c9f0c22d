// The keys of memlog top.
#pragma once

#include <string>
#include <vector>

namespace mtrace::text {

// Returns the line with the most important keys, of at most 80 columns.
std::string top_keys();
// Returns all keys, a line each.
std::vector<std::string> top_help();

}  // namespace mtrace::text
