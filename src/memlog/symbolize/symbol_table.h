// The function symbols of a module, sorted by address. libdwfl's own look-up walks the whole table
// for each address, which takes seconds for libraries of 50,000 symbols.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mtrace::symbolize {

class SymbolTable {
 public:
  // Reads .symtab or .dynsym, with .gnu_debugdata, as libdwfl finds them. The names belong to
  // `module`.
  explicit SymbolTable(Dwfl_Module* module);

  // The mangled name of the function that holds `address`, or nothing. Of several names for one
  // address the public one: global before weak before local, then without leading
  // underscores. Without its version (@GLIBC_2.2.5).
  std::string find(uint64_t address) const;

  // Where functions with the mangled name `name` begin, the public ones first.
  std::vector<uint64_t> addresses(const std::string& name) const;

 private:
  struct Symbol {
    uint64_t begin;
    uint64_t end;
    const char* name;
    int rank;  // the lower the better
  };
  std::vector<Symbol> symbols_;
};

}  // namespace mtrace::symbolize
