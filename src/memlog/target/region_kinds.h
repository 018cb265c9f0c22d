// What the mappings of a process are for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "target/mappings.h"

namespace mtrace::target {

enum class RegionKind : uint8_t {
  kHeap,        // malloc's first heap, which brk moves
  kArena,       // malloc's other heaps
  kLargeBlock,  // a block of malloc with a mapping of its own; see AddressSpace
  kStack,       // of a thread
  kAnonymous,   // all else without a file
  kData,        // variables of a file, and other private pages of it that may be written
  kFile,        // code and other pages of a file
  kShared,      // shared memory: of a file in memory, or anonymous
  kTables,      // of libmtrace.so: the ledger
  kReserved,    // no access: address space only
  kKernel,      // vdso and the like
};
inline constexpr size_t kRegionKinds = 11;

// Returns the kind of each mapping. A running process may change its memory meanwhile.
std::vector<RegionKind> region_kinds(pid_t pid, const std::vector<Mapping>& map);

}  // namespace mtrace::target
