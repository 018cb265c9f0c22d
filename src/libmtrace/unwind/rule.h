// One step of a walk, compiled from call-frame information and packed, together with the address
// for which it holds, into one word, so that a single atomic load or store moves all of it. How it
// is packed depends on the processor (unwind/*/rule.h).
//
// The key is the look-up address plus one: the plain return address, or the pc plus one where a
// signal interrupted.
#pragma once

#include <cstdint>

#include "base/machine.h"

namespace mtrace::unwind {

enum class RuleKind : uint8_t {
  kNone = 0,     // an empty place
  kFp = 1,       // CFA = frame pointer + offset
  kSp = 2,       // CFA = stack pointer + offset
  kDrap = 3,     // CFA = *(rbp - offset), the caller's rbp is *rbp: GCC's realigned frames (x86_64)
  kSignal = 4,   // the kernel's signal frame at the stack pointer
  kBottom = 5,   // return address undefined: the outermost function
  kSpecial = 6,  // needs the full interpreter
  kLost = 7,     // inside a loaded object, but without usable information
};

inline constexpr unsigned kCacheBits = 16;
inline constexpr uintptr_t kKeyEnd = uintptr_t{1} << machine::kUserBits;  // addresses are below

}  // namespace mtrace::unwind

#ifdef __x86_64__
#include "unwind/x86_64/rule.h"
#else
#include "unwind/aarch64/rule.h"
#endif

namespace mtrace::unwind {
static_assert(sizeof(Rule) == 8);
}
