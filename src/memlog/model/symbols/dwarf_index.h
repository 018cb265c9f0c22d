// Finds function, line and inlined functions at an address in DWARF. libdw's own scope lookup walks
// the whole tree of a unit for each address; this class walks each unit once, when it is first
// needed.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/symbols/dwarf_scopes.h"
#include "model/symbols/module_symbols.h"

namespace mtrace::symbols {

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
