// Blocks that the program does not call leaks (__lsan_ignore_object), for memlog unreachable. The
// pointers are kept as they were given, with their time: memlog finds the blocks.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "format/ledger.h"

namespace mtrace::ledger {

class IgnoredObjects {
 public:
  // False: no room. The last time that an address was put counts.
  bool put(uint64_t address, uint64_t ticks);

 private:
  friend struct Layout;

  format::LedgerIgnored* objects_;  // kLedgerIgnored; nullptr: none was put
};

}  // namespace mtrace::ledger
