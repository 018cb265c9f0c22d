// See unwind/code.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "unwind/code.h"

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

inline constexpr uintptr_t kInstruction = 1;
inline constexpr bool kReturnIsBelowSp = true;

// Instructions cannot be read backwards.
inline int32_t frame_size(const unsigned char*, const unsigned char*) { return 0; }

// As compilers write it: `add $N,%rsp`, `lea N(%rbp),%rsp` or `leave`; pops; `ret`, or a jump to
// what the function ends by calling. One of the first two may be missing.
inline bool read_epilogue(const unsigned char* code, const unsigned char* end, Epilogue* epilogue) {
  constexpr unsigned kRsp = 4;
  constexpr unsigned kRbp = 5;
  const auto begins_with = [&](unsigned a, unsigned b, unsigned c, unsigned size) {
    return end - code >= size && code[0] == a && code[1] == b && code[2] == c;
  };
  *epilogue = {false, Epilogue::kUnchanged, 0, 0};
  const unsigned char* const begin = code;
  if (begins_with(0x48, 0x83, 0xc4, 4)) {
    epilogue->pc = static_cast<signed char>(code[3]);
    code += 4;
  } else if (begins_with(0x48, 0x81, 0xc4, 7)) {
    memcpy(&epilogue->pc, code + 3, sizeof epilogue->pc);
    code += 7;
  } else if (begins_with(0x48, 0x8d, 0x65, 4)) {
    *epilogue = {true, Epilogue::kUnchanged, static_cast<signed char>(code[3]), 0};
    code += 4;
  } else if (code < end && code[0] == 0xc9) {
    *epilogue = {true, 0, 8, 0};
    ++code;
  }
  for (; code < end; ++code, epilogue->pc += 8) {
    const bool is_high = code[0] == 0x41 && end - code > 1;  // r8 to r15
    const unsigned number = code[is_high ? 1 : 0] - 0x58u;
    if (number > 7 || (!is_high && number == kRsp)) break;
    if (!is_high && number == kRbp) epilogue->fp = epilogue->pc;
    code += is_high ? 1 : 0;
  }
  epilogue->sp = epilogue->pc + 8;
  return code != begin && code < end && (code[0] == 0xc3 || code[0] == 0xe9 || code[0] == 0xeb) &&
         (epilogue->by_fp || epilogue->pc > 0);
}

}  // namespace mtrace::unwind
