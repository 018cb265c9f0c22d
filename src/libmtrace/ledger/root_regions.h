// Memory that the program registers as roots (__lsan_register_root_region), for memlog unreachable.
// Kept in the library's own variables, so that a fork's child and a core file have it.
//
// Thread-safe; async-signal-safe. An entry that a fork finds half changed stays unusable in the
// child.
#pragma once

#include <cstdint>

#include "format/ledger.h"

namespace mtrace::ledger {

class RootRegions {
 public:
  // False: no room.
  bool put(uint64_t address, uint64_t size);
  // Removes one region of this address and size, if there is any.
  void take(uint64_t address, uint64_t size);

 private:
  friend struct Layout;

  format::LedgerRootRegion regions_[format::kLedgerRootRegions];
};

extern RootRegions g_root_regions;

}  // namespace mtrace::ledger
