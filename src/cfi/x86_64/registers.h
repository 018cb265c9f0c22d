// System V ABI for x86_64, figure 3.36.
#pragma once

#include <cstdint>

namespace mtrace::cfi {

inline constexpr unsigned kRbx = 3, kFp = 6, kSp = 7, kReturn = 16, kPc = kReturn;
inline constexpr unsigned kRegisters = 17, kCfaRegisters = 16;

inline uintptr_t code_address(uintptr_t word) { return word; }

}  // namespace mtrace::cfi
