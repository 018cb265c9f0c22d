// What tracing costs the traced process, as the library publishes it in the status block and in the
// header of a ledger.
#pragma once

#include <cstdint>

namespace mtrace::format {

// The library writes each word atomically.
struct OwnCost {
  uint64_t memory;      // resident bytes of the tables, with the shadow of the heap, when last
                        // measured: at a report, or when the tables grew under MTRACE_MAX_MEMORY
  uint64_t shadow;      // of these, of the shadow of the heap
  uint64_t stopped;     // nanoseconds for which threads of the program have written reports
  uint64_t full_since;  // nanoseconds since 1970: when the tables reached MTRACE_MAX_MEMORY, from
                        // when on new blocks are lost; 0: they have not
};

// Estimate of the processor time of one counted call, in nanoseconds: doc/internals/measurements.md
// has 27 to 330 for a pair of malloc and free, and mostly some 60.
inline constexpr uint64_t kCallNanoseconds = 30;

}  // namespace mtrace::format
