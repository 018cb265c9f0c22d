// File names of paths in memlogs.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "format/memlog.h"

namespace mtrace::profile {

// Returns the text after the last slash, or all of `path` if it has none.
inline std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Like base_name(), without the " (deleted)" that the kernel appends to the path of an unlinked
// file.
inline std::string base_name_of_mapped(std::string_view path) {
  std::string name = base_name(path);
  name.resize(std::min(name.find(" (deleted)"), name.size()));
  return name;
}

// Returns whether a file of this name may be a report: X.memlog or X.memlog.zst.
inline bool is_report_name(std::string_view name) {
  const std::string_view compressed = format::kCompressedSuffix;
  if (name.ends_with(compressed)) name.remove_suffix(compressed.size());
  return name.ends_with(format::kSuffix);
}

}  // namespace mtrace::profile
