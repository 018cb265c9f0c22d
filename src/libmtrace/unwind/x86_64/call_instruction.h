#pragma once

#include <cstdint>

namespace mtrace::unwind {

inline constexpr uintptr_t kLongestCall = 7;

// AMD64 Architecture Programmer's Manual, volume 3, CALL (Near): E8 with a displacement of four
// bytes, or FF /2 with ModRM, perhaps SIB, and a displacement of none, one or four bytes.
inline bool ends_with_call(const unsigned char* code) {
  const unsigned char* const end = code + kLongestCall;
  if (end[-5] == 0xe8) return true;
  for (unsigned length = 2; length <= kLongestCall; ++length) {
    const unsigned char* const at = end - length;
    if (at[0] != 0xff || (at[1] >> 3 & 7) != 2) continue;
    const unsigned mod = at[1] >> 6;
    const unsigned rm = at[1] & 7;
    if (mod == 3) {
      if (length == 2) return true;
      continue;
    }
    const bool has_sib = rm == 4;
    if (has_sib && length < 3) continue;
    const bool no_base = mod == 0 && (has_sib ? (at[2] & 7) == 5 : rm == 5);
    const unsigned displacement = mod == 1 ? 1 : mod == 2 || no_base ? 4 : 0;
    if (length == 2u + (has_sib ? 1 : 0) + displacement) return true;
  }
  return false;
}

}  // namespace mtrace::unwind
