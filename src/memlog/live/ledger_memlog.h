// A ledger's state as a memlog, raw: what the library itself would have written at that moment,
// with the stacks that did not change but hold something, too.
#pragma once

#include <cstdint>
#include <string>

#include "live/ledger_state.h"

namespace mtrace::live {

struct LedgerOccasion {
  const char* trigger;  // recovered, snapshot
  uint64_t taken;       // nanoseconds since 1970
  std::string label;    // empty: none
  std::vector<std::string> notes;
  uint64_t rss = 0;  // bytes, of a process that lives; as the next two
  uint64_t rss_max = 0;
  uint64_t virtual_size = 0;
};

// The last sign of life in a ledger, nanoseconds since 1970: the birth of its youngest live block,
// its peak, or when the file was last written if the file system keeps that.
uint64_t last_sign_of_life(const LedgerFile& file, const LedgerState& state);

// The number that its next report would have is the memlog's `seq`. Throws what read() of a memlog
// throws where a damaged ledger leads to none.
std::string ledger_memlog(const LedgerFile& file, const LedgerState& state,
                          const LedgerOccasion& occasion);

}  // namespace mtrace::live
