// Recognises the dynamic loader that a program asks for.
#pragma once

#include <string_view>

namespace mtrace::format {

constexpr std::string_view loader_file(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  return path;
}

// Returns whether `path` names glibc's loader for x86-64 or arm64: its ABI name, with any suffix of
// a distribution.
constexpr bool is_glibc_loader(std::string_view path) {
  const std::string_view file = loader_file(path);
  return file.starts_with("ld-linux-x86-64.so") || file.starts_with("ld-lsb-x86-64.so") ||
         file.starts_with("ld-linux-aarch64.so") || file.starts_with("ld-2.");
}
constexpr bool is_musl_loader(std::string_view path) {
  return loader_file(path).starts_with("ld-musl");
}

}  // namespace mtrace::format
