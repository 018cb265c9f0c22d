// Where the tables are, for other processes: what a reader of the file behind them begins with.
#pragma once

#include "format/ledger.h"
#include "ledger/ledger.h"

namespace mtrace::ledger {

struct Layout {
  static format::LedgerRoots roots(const Ledger& ledger);
  static uint64_t shadow(const Ledger& ledger);  // of LedgerHeader
  static uint64_t regions();                     // the same
  static uint64_t ignored(const Ledger& ledger);
  static uint64_t root_regions();
};

}  // namespace mtrace::ledger
