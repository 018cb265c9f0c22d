// The function symbols of a module, sorted by address. libdwfl's own lookup walks the whole table
// for each address, which takes seconds for libraries with 50,000 symbols.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mtrace::symbolize {

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

}  // namespace mtrace::symbolize
