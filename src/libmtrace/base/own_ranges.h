// Which memory of the process this library has mapped for itself, of 64 KiB and more, so that it is
// not taken for the program's. 2048 ranges; others are not known as ours.
// Lock-free, thread-safe, async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::sys {

void add_own_range(uintptr_t start, size_t bytes);
void remove_own_range(uintptr_t start);

// The address of the ranges as the header of a ledger describes them (format::kLedgerOwnRanges).
uint64_t own_ranges();

struct OwnRange {
  uintptr_t start;
  uintptr_t end;
};
// The lowest own range that has a part in [start, end); an empty one: there is none.
OwnRange next_own_range(uintptr_t start, uintptr_t end);

// Bytes of [start, end) that lie in own ranges.
uint64_t own_bytes_in(uintptr_t start, uintptr_t end);

}  // namespace mtrace::sys
