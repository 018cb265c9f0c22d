// Copies of the files that names come from, for another machine.
#pragma once

#include <string>

#include "model/symbols/module_symbols.h"

namespace mtrace::symbols {

// Copies the files that give the module its names (see ModuleSymbols) to where they have effect as
// a directory of SearchPath::symbols. `binaries`: whole, else without code and data. Returns false
// when there are none, or no room. Works in a child process.
bool copy_symbols(const SearchPath& where, const std::string& path, const std::string& build_id,
                  bool binaries, const std::string& directory);

}  // namespace mtrace::symbols
