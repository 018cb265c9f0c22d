// Paths as memlogs hold them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace mtrace::profile {

// What follows the last slash; all of `path` where there is none.
inline std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Likewise, without the " (deleted)" that the kernel puts behind the path of an unlinked file.
inline std::string base_name_of_mapped(std::string_view path) {
  std::string name = base_name(path);
  name.resize(std::min(name.find(" (deleted)"), name.size()));
  return name;
}

}  // namespace mtrace::profile
