// See unwind/code.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "unwind/code.h"

namespace mtrace::unwind {

inline constexpr uintptr_t kLongestCall = 4;

// Arm Architecture Reference Manual, C6.2: BL, BLR, and BLR with authentication (BLRAA and others).
inline bool ends_with_call(const unsigned char* code) {
  uint32_t word;
  memcpy(&word, code, sizeof word);
  return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000 ||
         (word & 0xfefff800) == 0xd63f0800;
}

inline constexpr uintptr_t kInstruction = 4;
inline constexpr bool kReturnIsBelowSp = false;

// What instructions have as a distance in bytes: ldp and stp; ldr and str that change their base;
// add and sub.
inline int32_t distance_of_pair(uint32_t word) {
  return static_cast<int32_t>(word << 10) >> 25 << 3;
}
inline int32_t distance_of_one(uint32_t word) { return static_cast<int32_t>(word << 11) >> 23; }
inline int32_t distance_added(uint32_t word) {
  return static_cast<int32_t>(word >> 10 & 0xfff) << ((word & 0x400000) != 0 ? 12 : 0);
}

// By how much an instruction lowers the stack pointer: `sub sp, sp, #n`, `stp x, x, [sp, #-n]!`,
// `str x, [sp, #-n]!`; otherwise 0.
inline int32_t lowers_stack(uint32_t word) {
  constexpr uint32_t kFromSp = 31 << 5;
  if ((word & 0xff8003ff) == (0xd1000000 | kFromSp | 31)) return distance_added(word);
  if ((word & 0xffe003e0) == (0xa9a00000 | kFromSp)) return -distance_of_pair(word);
  if ((word & 0xfff00fe0) == (0xf8100c00 | kFromSp)) return -distance_of_one(word);
  return 0;
}

// The nearest such instructions, some of which may stand together. Code that follows the function's
// first return has no others.
inline int32_t frame_size(const unsigned char* code, const unsigned char* begin) {
  constexpr unsigned kMost = 2048;  // instructions
  constexpr unsigned kTogether = 8;
  int32_t size = 0;
  for (unsigned i = 0, left = kMost; i < left && code - begin >= 4; ++i) {
    uint32_t word;
    memcpy(&word, code -= sizeof word, sizeof word);
    const int32_t more = lowers_stack(word);
    if (size == 0 && more != 0) left = i + kTogether;
    if (size != 0 && (word == 0xd65f03c0 || word >> 26 == 5)) break;  // ret, b
    size += more;
  }
  return size;
}

// Whether an instruction moves a register or a constant, or authenticates the return address.
inline bool leaves_stack_alone(uint32_t word) {
  return (word & 0x7fe0ffe0) == 0x2a0003e0 || (word & 0x1f800000) == 0x12800000 ||
         word == 0xd50323bf;
}

// As compilers write it: loads of registers from the stack, the last of which, or an addition,
// gives the frame back; among them moves of what is returned; `ret`, or a jump to what the function
// ends by calling. `mov sp, x29` may stand before. (Arm Architecture Reference Manual, C6.2.)
inline bool read_epilogue(const unsigned char* code, const unsigned char* end, Epilogue* epilogue) {
  constexpr unsigned kMost = 16;  // instructions
  constexpr unsigned kFp = 29;
  constexpr unsigned kLr = 30;
  constexpr unsigned kSp = 31;
  *epilogue = {false, Epilogue::kUnchanged, Epilogue::kUnchanged, 0};
  uint32_t word;
  for (unsigned i = 0; i < kMost && end - code >= 4; ++i, code += sizeof word) {
    memcpy(&word, code, sizeof word);
    const unsigned first = word & 31;
    const unsigned base = word >> 5 & 31;
    const auto load = [&](unsigned number, int32_t distance) {
      if (number == kFp) epilogue->fp = epilogue->sp + distance;
      if (number == kLr) epilogue->pc = epilogue->sp + distance;
    };
    const bool pair_after = (word & 0xffc00000) == 0xa8c00000;  // ldp x, x, [base], #n
    const bool one_after = (word & 0xffe00c00) == 0xf8400400;   // ldr x, [base], #n
    if (base == kSp && (pair_after || (word & 0xffc00000) == 0xa9400000)) {
      const int32_t distance = distance_of_pair(word);
      load(first, pair_after ? 0 : distance);
      load(word >> 10 & 31, (pair_after ? 0 : distance) + 8);
      epilogue->sp += pair_after ? distance : 0;
    } else if (base == kSp && one_after) {
      load(first, 0);
      epilogue->sp += distance_of_one(word);
    } else if (base == kSp && (word & 0xffc00000) == 0xf9400000) {  // ldr x, [sp, #n]
      load(first, static_cast<int32_t>(word >> 10 & 0xfff) << 3);
    } else if (first == kSp && (word & 0xff800000) == 0x91000000 &&
               (base == kSp || (base == kFp && i == 0))) {  // add sp, base, #n
      if (base == kFp) epilogue->by_fp = true;
      epilogue->sp += distance_added(word);
    } else if (word == 0xd65f03c0 || word == 0xd65f0bff || word >> 26 == 5) {  // ret, retaa, b
      return epilogue->pc != Epilogue::kUnchanged && epilogue->sp > epilogue->pc;
    } else if (i == 0 || !leaves_stack_alone(word)) {
      return false;
    }
  }
  return false;
}

}  // namespace mtrace::unwind
