// Addresses of the tables for readers in other processes: the roots in a ledger file's header.
#pragma once

#include "format/ledger.h"
#include "ledger/ledger.h"

namespace mtrace::ledger {

struct Layout {
  static format::LedgerRoots roots(const Ledger& ledger);
  static uint64_t shadow(const Ledger& ledger);  // for LedgerHeader::shadow, as the next three
  static uint64_t regions();
};

}  // namespace mtrace::ledger
