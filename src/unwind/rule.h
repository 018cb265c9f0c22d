// How one step of a walk is done, compiled from call-frame information and packed, together with
// the address it holds for, into one word, so that a single atomic load or store moves all of it.
//
//   bit  0..30  tag: bits 16..46 of the key; bits 0..15 are the place in the cache, so the pair is
//               exact
//       31..33  kind
//       34..41  n: the caller's rbp is at CFA - 8n; 1: it is unchanged (the return address is
//               there, so that a walk can always load this word)
//       42..63  offset of the CFA, in words
//
// The key is the look-up address plus one: the plain return address, or the pc plus one where a
// signal interrupted.
#pragma once

#include <cstdint>

namespace mtrace::unwind {

enum class RuleKind : uint8_t {
  kNone = 0,     // an empty place
  kLost = 1,     // inside a loaded object, but without usable information
  kSpecial = 2,  // needs the full interpreter
  kBottom = 3,   // return address undefined: the outermost function
  kSignal = 4,   // the kernel's signal frame at rsp
  kDrap = 5,     // CFA = *(rbp - offset), the caller's rbp is *rbp: GCC's realigned frames
  kRsp = 6,      // CFA = rsp + offset
  kRbp = 7,      // CFA = rbp + offset
};

inline constexpr unsigned kCacheBits = 16;
inline constexpr uintptr_t kKeyEnd = uintptr_t{1} << 47;  // user addresses are below

class Rule {
 public:
  static constexpr uint64_t kMaxOffset = ((uint64_t{1} << 22) - 1) * 8;
  static constexpr uint64_t kMaxSlot = 255;
  static constexpr uint64_t kSameRbp = 1;

  constexpr Rule() = default;
  constexpr explicit Rule(uint64_t bits) : bits_(bits) {}
  // `offset` in bytes, a multiple of 8 up to kMaxOffset; `slot` up to kMaxSlot.
  constexpr Rule(RuleKind kind, uint64_t offset = 0, uint64_t slot = kSameRbp)
      : bits_(offset / 8 << 42 | slot << 34 | static_cast<uint64_t>(kind) << 31) {}

  constexpr uint64_t bits() const { return bits_; }
  constexpr RuleKind kind() const { return static_cast<RuleKind>(bits_ >> 31 & 7); }
  // kRsp or kRbp; and which of them.
  constexpr bool is_plain() const { return (bits_ >> 32 & 3) == 3; }
  constexpr bool from_rbp() const { return (bits_ >> 31 & 1) != 0; }
  constexpr uint64_t offset() const { return (bits_ >> 42) * 8; }
  constexpr uint64_t slot() const { return bits_ >> 34 & 0xff; }

  // The same rule as the cache holds it for `key` (below kKeyEnd).
  constexpr Rule tagged(uintptr_t key) const { return Rule((bits_ & ~kTagMask) | key >> 16); }
  constexpr bool holds_for(uintptr_t key) const { return (bits_ & kTagMask) == key >> 16; }

 private:
  static constexpr uint64_t kTagMask = (uint64_t{1} << 31) - 1;
  uint64_t bits_ = 0;
};
static_assert(sizeof(Rule) == 8);

}  // namespace mtrace::unwind
