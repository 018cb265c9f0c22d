// The function symbols of a module, sorted by address. libdwfl's own lookup walks the whole table
// for each address, which takes seconds for libraries with 50,000 symbols.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/symbols/module_symbols.h"

namespace mtrace::symbols {

class SymbolTable {
 public:
  // Reads .symtab or .dynsym, with .gnu_debugdata, as libdwfl finds them. `module` owns the names
  // and must outlive this.
  explicit SymbolTable(Dwfl_Module* module);

  // Returns the mangled name of the function that contains `address`, without its version
  // (@GLIBC_2.2.5); empty: none. Of several names for one address it prefers the public one: global
  // before weak before local, then names without leading underscores.
  std::string find(uint64_t address) const;

  // Returns where functions with this mangled name begin, the public ones first.
  std::vector<uint64_t> addresses(const std::string& name) const;

 private:
  struct Symbol {
    uint64_t begin;
    uint64_t end;
    const char* name;
    int rank;  // lower is better
  };
  std::vector<Symbol> symbols_;
};

// Finds an exported object of a loaded ELF file.

// Returns the address of the exported symbol `name` in a process that has mapped offset
// `map_offset` of the file behind `descriptor` at `map_address`. Stores the symbol's size in bytes
// in `size`. Returns nothing when the file is no ELF file, exports no such symbol, or has no
// segment there.
std::optional<uint64_t> exported_address(int descriptor, const std::string& name,
                                         uint64_t map_address, uint64_t map_offset, uint64_t* size);

// Finds functions by name.

// For each of the mangled `names`, returns the ELF addresses of the functions with that name in the
// module at `path`, the likeliest first; empty: nothing known. Works in a child process.
std::vector<std::vector<uint64_t>> symbol_addresses(const SearchPath& where,
                                                    const std::string& path,
                                                    const std::string& build_id,
                                                    const std::vector<std::string>& names);

}  // namespace mtrace::symbols
