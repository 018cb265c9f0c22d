// Memory that the program calls a root (__lsan_register_root_region), for memlog unreachable. Part
// of the library's own variables: a fork's child has it, and a core file.
//
// Thread-safe; async-signal-safe. A change that a fork has cut short takes its place away from the
// child.
#pragma once

#include <cstdint>

#include "format/ledger.h"

namespace mtrace::ledger {

class RootRegions {
 public:
  // False: no room.
  bool put(uint64_t address, uint64_t size);
  // Takes one such region out, if there is any.
  void take(uint64_t address, uint64_t size);

 private:
  friend struct Layout;

  format::LedgerRootRegion regions_[format::kLedgerRootRegions];
};

extern RootRegions g_root_regions;

}  // namespace mtrace::ledger
