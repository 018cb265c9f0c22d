// One step of a walk, compiled from call-frame information and packed, together with the address
// for which it holds, into one word, so that a single atomic load or store moves all of it.
//
//   bit  0..30  tag: bits 16..46 of the key; bits 0..15 are the place in the cache, so the pair is
//               exact
//       31      plain: kind kRsp or kRbp, and what is saved is not below rsp
//       32..34  kind
//       35..39  where the caller's rbp is: 32 words below the CFA and this many up; 31: unchanged
//               (the return address is there, so that a walk can always load this word)
//       40..63  offset of the CFA in bytes, a multiple of 8; in a rule that is not plain bit 40
//               says that the rule would be plain, but the frame is one of Python's evaluation
//               loop or one of this library
//
// The key is the look-up address plus one: the plain return address, or the pc plus one where a
// signal interrupted.
#pragma once

#include <cstdint>

namespace mtrace::unwind {

enum class RuleKind : uint8_t {
  kNone = 0,     // an empty place
  kRbp = 1,      // CFA = rbp + offset
  kRsp = 2,      // CFA = rsp + offset
  kDrap = 3,     // CFA = *(rbp - offset), the caller's rbp is *rbp: GCC's realigned frames
  kSignal = 4,   // the kernel's signal frame at rsp
  kBottom = 5,   // return address undefined: the outermost function
  kSpecial = 6,  // needs the full interpreter
  kLost = 7,     // inside a loaded object, but without usable information
};

inline constexpr unsigned kCacheBits = 16;
inline constexpr uintptr_t kKeyEnd = uintptr_t{1} << 47;  // user addresses are below

class Rule {
 public:
  static constexpr uint64_t kMaxOffset = (uint64_t{1} << 24) - 8;
  static constexpr uint64_t kMaxSlot = 32;
  static constexpr uint64_t kSameRbp = 1;

  constexpr Rule() = default;
  constexpr explicit Rule(uint64_t bits) : bits_(bits) {}
  // `offset` in bytes, a multiple of 8 up to kMaxOffset; the caller's rbp is `slot` (1 to
  // kMaxSlot) words below the CFA.
  constexpr Rule(RuleKind kind, uint64_t offset = 0, uint64_t slot = kSameRbp)
      : bits_(offset << 40 | (kMaxSlot - slot) << 35 | static_cast<uint64_t>(kind) << 32) {
    if ((kind == RuleKind::kRsp || kind == RuleKind::kRbp) && slot * 8 <= offset) bits_ |= kPlain;
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr RuleKind kind() const { return static_cast<RuleKind>(bits_ >> 32 & 7); }
  constexpr bool is_plain() const { return (bits_ & kPlain) != 0; }
  // Of a plain rule: kRbp, not kRsp.
  constexpr bool from_rbp() const { return (bits_ >> 32 & 1) != 0; }
  constexpr uint64_t offset() const { return bits_ >> 40; }
  constexpr uint64_t slot() const { return kMaxSlot - slot_up(); }
  // slot(), counted upwards from kMaxSlot words below the CFA.
  constexpr uint64_t slot_up() const { return bits_ >> 35 & (kMaxSlot - 1); }

  // Marks a plain rule as one for a frame of Python's evaluation loop or of this library, and back.
  constexpr bool is_marked() const { return (bits_ & kMark) != 0 && !is_plain(); }
  constexpr Rule marked() const { return is_plain() ? Rule((bits_ | kMark) & ~kPlain) : *this; }
  constexpr Rule without_mark() const { return Rule((bits_ & ~kMark) | kPlain); }

  // The rule with the tag of `key` (below kKeyEnd), as the cache holds it.
  constexpr Rule tagged(uintptr_t key) const { return Rule((bits_ & ~kTag) | key >> 16); }
  constexpr bool holds_for(uintptr_t key) const { return (bits_ & kTag) == key >> 16; }
  // The key of the rule at `place` in the cache.
  constexpr uintptr_t key_at(uintptr_t place) const { return (bits_ & kTag) << 16 | place; }
  // The rule is plain and holds for `key`: one comparison, and false for every key that is no user
  // address. (The sum of a key above those has more than 32 bits.)
  constexpr bool is_plain_for(uintptr_t key) const {
    return static_cast<uint32_t>(bits_) == (key >> 16) + kPlain;
  }

 private:
  static constexpr uint64_t kTag = (uint64_t{1} << 31) - 1;
  static constexpr uint64_t kPlain = uint64_t{1} << 31;
  static constexpr uint64_t kMark = uint64_t{1} << 40;
  uint64_t bits_ = 0;
};
static_assert(sizeof(Rule) == 8);

}  // namespace mtrace::unwind
