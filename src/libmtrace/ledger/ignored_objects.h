// Blocks that the program exempts from leak reports (__lsan_ignore_object), for memlog unreachable.
// Keeps each pointer as passed, with its time; memlog finds the blocks.
//
// Thread-safe; async-signal-safe.
#pragma once

#include <cstdint>

#include "format/ledger.h"

namespace mtrace::ledger {

class IgnoredObjects {
 public:
  // False: no room. Of an address that is put again, the last time counts.
  bool put(uint64_t address, uint64_t ticks);

 private:
  friend struct Layout;

  format::LedgerIgnored* objects_;  // array of kLedgerIgnored; nullptr: none was put
};

}  // namespace mtrace::ledger
