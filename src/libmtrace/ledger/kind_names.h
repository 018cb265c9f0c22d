// The names of the program's kinds of resources, numbered from 1 as they appear. Names are only
// added, at most ResourceTable::kMostKinds of them. Lock-free; async-signal-safe.
#pragma once

#include <cstddef>

#include "format/ledger.h"

namespace mtrace::ledger {

inline constexpr size_t kMostKindName = 31;  // bytes

// Whether `name` is 1 to 31 letters, digits and "-" (ASCII). nullptr is not.
bool is_kind_name(const char* name);

// Number of a kind by a name that is one; 0: it is not known.
unsigned find_kind(const char* name);
// The same, and a name that is not known gets a number; 0: there are as many as there can be.
unsigned find_or_add_kind(const char* name);

// Name by number; nullptr past the last.
const char* kind_name(unsigned number);

// Writes the names into the header of the file behind the tables, where they also go as they
// appear.
void show_kinds(format::LedgerHeader& header);

}  // namespace mtrace::ledger
