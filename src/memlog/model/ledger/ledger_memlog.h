// Turns a ledger's state into a raw memlog: the report that the library would have written at that
// moment, plus the stacks that did not change but hold memory.
#pragma once

#include <cstdint>
#include <string>

#include "model/ledger/ledger_state.h"

namespace mtrace::ledger {

struct LedgerOccasion {
  const char* trigger;  // "recovered" or "snapshot"
  uint64_t taken;       // nanoseconds since 1970
  std::string label;    // empty: none
  std::vector<std::string> notes;
  uint64_t rss = 0;  // bytes, if the process lives; so are the next two
  uint64_t rss_max = 0;
  uint64_t virtual_size = 0;
};

struct LastSign {
  uint64_t when;     // nanoseconds since 1970
  bool of_contents;  // the file is a later copy, whose dates say nothing
};
// The birth of the youngest live block, the peak, or the last write to the file if the file system
// records that.
LastSign last_sign_of_life(const LedgerFile& file, const LedgerState& state);

// Returns the text of the memlog. Its `seq` is the number that the next report would have. Throws
// what reading a memlog throws when a damaged ledger gives no valid one.
std::string ledger_memlog(const LedgerFile& file, const LedgerState& state,
                          const LedgerOccasion& occasion);

}  // namespace mtrace::ledger
