// The memory that this library has mapped for itself, so that it is not taken for the program's.
// Holds 2048 ranges of 64 KiB or more; smaller and further ones are not recorded.
// Lock-free, thread-safe, async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::sys {

void add_own_range(uintptr_t start, size_t bytes);
void remove_own_range(uintptr_t start);

// Address of the ranges, in the form that the header of a ledger describes (kLedgerOwnRanges).
uint64_t own_ranges();

struct OwnRange {
  uintptr_t start;
  uintptr_t end;
};
// The lowest own range that overlaps [start, end); an empty range: none does.
OwnRange next_own_range(uintptr_t start, uintptr_t end);

// Bytes of [start, end) that lie in own ranges.
uint64_t own_bytes_in(uintptr_t start, uintptr_t end);

}  // namespace mtrace::sys
