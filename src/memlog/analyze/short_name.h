// C++ names as people write them.
#pragma once

#include <string>

namespace mtrace::analyze {

// Leaves out the standard library's default template arguments (allocator, char_traits, less,
// hash, equal_to, default_delete) and its inline ABI namespace, and writes std::string for what
// remains of that. Other names stay as they are. For showing only: two functions may get one name.
std::string short_name(std::string name);

}  // namespace mtrace::analyze
