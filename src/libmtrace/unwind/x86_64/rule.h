// A packed rule (unwind/rule.h) of x86_64:
//
//   bit  0..30  tag: bits 16..46 of the key; bits 0..15 are the place in the cache, so the pair is
//               exact
//       31      plain: kind kFp or kSp, and what is saved is not below rsp
//       32..34  kind
//       35..39  where the caller's rbp is: 32 words below the CFA and this many up; 31: unchanged
//               (the return address is there, so that a walk can always load this word)
//       40..63  offset of the CFA in bytes, a multiple of 8; in a rule that is not plain bit 40
//               says that the rule would be plain, but the frame is one of Python's evaluation
//               loop or one of this library
#pragma once

#include <cstdint>

#include "unwind/rule.h"

namespace mtrace::unwind {

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
    if ((kind == RuleKind::kSp || kind == RuleKind::kFp) && slot * 8 <= offset) bits_ |= kPlain;
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr RuleKind kind() const { return static_cast<RuleKind>(bits_ >> 32 & 7); }
  constexpr bool is_plain() const { return (bits_ & kPlain) != 0; }
  // Of a plain rule: kFp, not kSp.
  constexpr bool from_fp() const { return (bits_ >> 32 & 1) != 0; }
  constexpr uint64_t offset() const { return bits_ >> 40; }
  // The CFA by a plain rule. Written out, because compilers make a branch of it, and one that is
  // mispredicted costs more than a frame.
  uintptr_t cfa(uintptr_t fp, uintptr_t sp) const {
    const uintptr_t by_fp = fp + offset();
    uintptr_t cfa = sp + offset();
    asm("btq $32, %1\n\tcmovcq %2, %0" : "+r"(cfa) : "r"(bits_), "r"(by_fp) : "cc");
    return cfa;
  }
  // How many words below the CFA everything that is saved lies.
  constexpr uint64_t reach() const { return kMaxSlot - slot_up(); }
  // Where a frame whose CFA is `above` has the return address, and the caller's rbp if saves_fp().
  // Otherwise fp_slot() is some word that can be read.
  static const uintptr_t* return_slot(const uintptr_t* above) { return above - 1; }
  const uintptr_t* fp_slot(const uintptr_t* above) const { return above - kMaxSlot + slot_up(); }
  constexpr bool saves_fp() const { return slot_up() != kMaxSlot - kSameRbp; }

  // Marks a plain rule as one for a frame of Python's evaluation loop or of this library, and back.
  constexpr bool is_marked() const { return (bits_ & kMark) != 0 && !is_plain(); }
  constexpr Rule marked() const { return is_plain() ? Rule((bits_ | kMark) & ~kPlain) : *this; }
  constexpr Rule without_mark() const { return Rule((bits_ & ~kMark) | kPlain); }

  // The place of a key in the cache; keys that are the same shifted by that share it.
  static constexpr unsigned kPlaceShift = 0;
  static constexpr uint16_t place_of(uintptr_t key) { return static_cast<uint16_t>(key); }
  // Whether it may be a key, if it is below kKeyEnd.
  static constexpr bool is_key(uintptr_t) { return true; }

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
  // How far up the slot is, counted from kMaxSlot words below the CFA.
  constexpr uint64_t slot_up() const { return bits_ >> 35 & (kMaxSlot - 1); }
  static constexpr uint64_t kTag = (uint64_t{1} << 31) - 1;
  static constexpr uint64_t kPlain = uint64_t{1} << 31;
  static constexpr uint64_t kMark = uint64_t{1} << 40;
  uint64_t bits_ = 0;
};

}  // namespace mtrace::unwind
