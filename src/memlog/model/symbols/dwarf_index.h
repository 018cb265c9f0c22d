// Finds function, line and inlined functions at an address in DWARF. libdw's own scope lookup walks
// the whole tree of a unit for each address; this class walks each unit once, when it is first
// needed.
#pragma once

#include <elfutils/libdw.h>

#include "model/symbols/module_symbols.h"
#include "util/prelude.h"

namespace mtrace::symbols {

// Names of C++ functions that DWARF gives no linkage name: those with a lambda, a local class or
// the anonymous namespace in their names. The scopes around them tell the rest.
class DwarfScopes {
 public:
  // Returns "main::{lambda(int)}::operator()" for the function, inlined function or declaration
  // `die`; its plain name where the unit is not C++. Walks the unit for each new function.
  std::string name(Dwarf_Die* die);

 private:
  absl::flat_hash_map<const void*, std::string> known_;  // by address of the declaration
};

class DwarfIndex {
 public:
  // `dwarf` must outlive this.
  explicit DwarfIndex(Dwarf* dwarf);

  // Returns the frames at `address`, in the addresses of the debugging information (no load bias).
  // `symbol`: the name from the symbol table, if any.
  SourceFrames frames(uint64_t address, const std::string& symbol);

 private:
  struct Unit {
    Dwarf_Die lines;      // the DIE whose line table is valid
    Dwarf_Die functions;  // the same DIE, or its split counterpart
    bool walked = false;
    struct Function {
      uint64_t begin;
      uint64_t end;
      Dwarf_Die die;
    };
    std::vector<Function> ranges;  // sorted by begin
  };
  struct UnitRange {
    uint64_t begin;
    uint64_t end;
    uint32_t unit;
  };

  Unit* unit_at(uint64_t address);
  void walk(Unit& unit, Dwarf_Die* die, int depth);
  Dwarf_Die* function_at(Unit& unit, uint64_t address);

  Dwarf* dwarf_;
  DwarfScopes scopes_;
  std::vector<Unit> units_;
  std::vector<UnitRange> ranges_;  // sorted by begin
};

}  // namespace mtrace::symbols
