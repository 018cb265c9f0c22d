// Names of the kinds of resources that the program records, numbered from 1 as they appear. Names
// are only added, at most ResourceTable::kMostKinds of them, one thread at a time (base/turn.h).
// Thread-safe; async-signal-safe.
#pragma once

#include <cstddef>

#include "format/ledger.h"

namespace mtrace::ledger {

inline constexpr size_t kMostKindName = 31;  // bytes

// Whether `name` is 1 to 31 letters, digits and "-" (ASCII). nullptr is not.
bool is_kind_name(const char* name);

// Number of the kind with this name, which must pass is_kind_name(); 0: unknown.
unsigned find_kind(const char* name);
// Number of the kind with this name, added if unknown; 0: no room for another kind.
unsigned find_or_add_kind(const char* name);

// Name by number; nullptr past the last.
const char* kind_name(unsigned number);

// Writes the names into the header of the ledger file. find_or_add_kind() adds later ones.
void show_kinds(format::LedgerHeader& header);

}  // namespace mtrace::ledger
