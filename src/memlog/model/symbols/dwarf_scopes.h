// Names of C++ functions that DWARF gives no linkage name: those with a lambda, a local class or
// the anonymous namespace in their names. The scopes around them tell the rest.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <elfutils/libdw.h>

#include <string>

namespace mtrace::symbols {

class DwarfScopes {
 public:
  // Returns "main::{lambda(int)}::operator()" for the function, inlined function or declaration
  // `die`; its plain name where the unit is not C++. Walks the unit for each new function.
  std::string name(Dwarf_Die* die);

 private:
  absl::flat_hash_map<const void*, std::string> known_;  // by address of the declaration
};

}  // namespace mtrace::symbols
