// Function, line and inlined functions at an address, from DWARF. libdw's own scope look-up walks
// a unit's whole tree for each address; here each unit that is asked for is walked once.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <vector>

#include "symbolize/source_frame.h"

namespace mtrace::symbolize {

class DwarfIndex {
 public:
  // `dwarf` must outlive this.
  explicit DwarfIndex(Dwarf* dwarf);

  // What stands at `address` (of the debugging information: without bias). `symbol` is the name
  // that the symbol table has for it, if any.
  SourceFrames frames(uint64_t address, const std::string& symbol);

 private:
  struct Unit {
    Dwarf_Die lines;      // whose line table is valid
    Dwarf_Die functions;  // the same one, or its split counterpart
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
  std::vector<Unit> units_;
  std::vector<UnitRange> ranges_;  // sorted by begin
};

}  // namespace mtrace::symbolize
