// Shortens C++ names to what people write.
#pragma once

#include <string>

namespace mtrace::analyze {

// Removes the standard library's default template arguments (allocator, char_traits, less, hash,
// equal_to, default_delete) and its inline ABI namespace, and writes std::string where that
// remains. Returns other names unchanged. For display only: two functions may get the same name.
std::string short_name(std::string name);

}  // namespace mtrace::analyze
