// What the ledger records of a live block.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace mtrace::ledger {

inline constexpr uint64_t kMostBytes = (uint64_t{1} << 47) - 1;  // largest block: 128 TiB

struct Block {
  uint64_t size;       // requested bytes, up to kMostBytes
  uint32_t stack;      // index in the stack table, from 1, below 2^26
  uint32_t birth = 0;  // packed ticks
};

// Handler for a block that was freed past the hooks, called when another block takes its address.
// The freed block is in no table any more. The caller is the thread that records the other block,
// or a report, inside an operation. nullptr: no handler. Set before the first block is put.
using OnMissedFree = void (*)(uintptr_t address, const Block& block);
[[gnu::visibility("hidden")]] extern OnMissedFree g_on_missed_free;
inline void missed_free(uintptr_t address, const Block& block) {
  if (g_on_missed_free != nullptr) g_on_missed_free(address, block);
}

// ---- Time as the ledger keeps it: ticks of 2^20 ns (1.05 ms) since the process was first traced,
// and the packed form in which a block stores its birth.

inline constexpr unsigned kTickShift = 20;  // a tick is 2^20 ns
inline constexpr uint64_t nanoseconds_of(uint64_t ticks) { return ticks << kTickShift; }
inline constexpr uint64_t milliseconds_of(uint64_t ticks) {
  return nanoseconds_of(ticks) / 1'000'000u;
}

// Packed ticks: a floating-point number of 27 bits, 2 of exponent and 25 of mantissa. Exact for the
// first 9.7 hours of a process, then in steps of 16 ticks for 6 days, of 256 for 104 days, of 4096
// for 4.5 years. Packed numbers have the order of the ticks that they stand for.
inline constexpr unsigned kPackedTickBits = 27;
inline constexpr unsigned kMantissaBits = 25;
inline constexpr unsigned kExponentStep = 4;  // bits that an exponent of 1 drops
inline constexpr uint32_t kMostPackedTicks = (1u << kPackedTickBits) - 1;

constexpr uint32_t pack_ticks(uint64_t ticks) {
  if (ticks < 1u << kMantissaBits) [[likely]]
    return static_cast<uint32_t>(ticks);
  for (uint32_t exponent = 1; exponent < 4; ++exponent) {
    const uint64_t mantissa = ticks >> exponent * kExponentStep;
    if (mantissa < 1u << kMantissaBits) {
      return exponent << kMantissaBits | static_cast<uint32_t>(mantissa);
    }
  }
  return kMostPackedTicks;
}

// The earliest of the times that have this packed form.
constexpr uint64_t unpack_ticks(uint32_t packed) {
  if (packed < 1u << kMantissaBits) [[likely]]
    return packed;
  const uint32_t mantissa = packed & ((1u << kMantissaBits) - 1);
  return uint64_t{mantissa} << (packed >> kMantissaBits) * kExponentStep;
}

// The step of packed times around `ticks`, in ticks.
constexpr uint64_t packed_step(uint64_t ticks) {
  return uint64_t{1} << (pack_ticks(ticks) >> kMantissaBits) * kExponentStep;
}

// Call before the first ticks_now().
inline void start_ticks() { base::g_time_zero = base::coarse_time(); }
inline uint64_t ticks_now() { return (base::coarse_time() - base::g_time_zero) >> kTickShift; }

}  // namespace mtrace::ledger
