// Copies of the files that names come from, for another machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/symbols/module_symbols.h"

namespace mtrace::symbols {

// Gives `sink` the pieces of a copy of a 64-bit ELF file that has its symbol tables, notes and
// debugging information, and of its code and data only where these were. Returns false, and gives
// nothing, for a file that is none, or is damaged.
bool copy_without_code(std::string_view file, const std::function<void(std::string_view)>& sink);

struct SymbolFile {
  std::string name;   // below the directory of symbols, with a slash at its begin
  uint64_t size = 0;  // bytes
};

// Fills the open file `descriptor` with the files that give the module its names, one after the
// other (see ModuleSymbols). `binaries`: whole. Returns them; empty: there are none, or no room.
// Works in a child process.
std::vector<SymbolFile> copy_symbols(const SearchPath& where, const std::string& path,
                                     const std::string& build_id, bool binaries, int descriptor);

}  // namespace mtrace::symbols
