#pragma once

#include <cstdint>
#include <cstring>

namespace mtrace::unwind {

inline constexpr uintptr_t kLongestCall = 4;

// Arm Architecture Reference Manual, C6.2: BL, BLR, and BLR with authentication (BLRAA and others).
inline bool ends_with_call(const unsigned char* code) {
  uint32_t word;
  memcpy(&word, code, sizeof word);
  return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000 ||
         (word & 0xfefff800) == 0xd63f0800;
}

}  // namespace mtrace::unwind
