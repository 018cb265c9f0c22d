// DWARF for the Arm 64-bit Architecture, section 4.1: x0 to x30, sp, pc. The return address is in
// x30 when a function begins.
#pragma once

#include <cstdint>

namespace mtrace::cfi {

inline constexpr unsigned kFp = 29, kReturn = 30, kSp = 31, kPc = 32;
inline constexpr unsigned kRegisters = 33, kCfaRegisters = 32;

// A return address, as it is in memory, without a signature (pointer authentication), which is in
// the bits above those of an address.
inline uintptr_t code_address(uintptr_t word) { return word & ((uintptr_t{1} << 48) - 1); }

}  // namespace mtrace::cfi
