// DWARF for the Arm 64-bit Architecture, section 4.1: x0 to x30, sp, pc. The return address is in
// x30 when a function begins.
#pragma once

namespace mtrace::unwind {

inline constexpr unsigned kFp = 29, kReturn = 30, kSp = 31, kPc = 32;
inline constexpr unsigned kRegisters = 33, kCfaRegisters = 32;

}  // namespace mtrace::unwind
