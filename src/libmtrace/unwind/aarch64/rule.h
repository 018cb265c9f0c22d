// A packed rule (unwind/rule.h) of aarch64:
//
//   bit  0..29  tag: bits 18..47 of the key; bits 2..17 are the place in the cache. Bit 1 of a key
//               is 0, since instructions are words
//       30      bit 0 of the key: 1 where a signal interrupted
//       31      plain: kind kFp or kSp, and what is saved is not below sp
//       32..34  kind
//       35      the caller's x29 is saved in the word below the return address; otherwise unchanged
//       36      in a rule that is not plain: it would be plain, but the frame is one of Python's
//               evaluation loop or one of this library
//       37..49  where the return address is, in words below the CFA
//       50..63  offset of the CFA in words
#pragma once

#include <cstdint>

#include "unwind/rule.h"

namespace mtrace::unwind {

class Rule {
 public:
  static constexpr uint64_t kMaxOffset = ((uint64_t{1} << 14) - 1) * 8;
  static constexpr uint64_t kMaxSlot = (uint64_t{1} << 13) - 1;

  constexpr Rule() = default;
  constexpr explicit Rule(uint64_t bits) : bits_(bits) {}
  constexpr Rule(RuleKind kind) : bits_(static_cast<uint64_t>(kind) << 32) {}
  // `offset` in bytes, a multiple of 8 up to kMaxOffset; the return address is `slot` words (1 to
  // kMaxSlot) below the CFA.
  constexpr Rule(RuleKind kind, uint64_t offset, uint64_t slot = 1, bool saves_fp = false)
      : bits_(offset / 8 << 50 | slot << 37 | uint64_t{saves_fp} << 35 |
              static_cast<uint64_t>(kind) << 32) {
    if ((kind == RuleKind::kSp || kind == RuleKind::kFp) && reach() * 8 <= offset) bits_ |= kPlain;
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr RuleKind kind() const { return static_cast<RuleKind>(bits_ >> 32 & 7); }
  constexpr bool is_plain() const { return (bits_ & kPlain) != 0; }
  // Of a plain rule: kFp, not kSp.
  constexpr bool from_fp() const { return (bits_ >> 32 & 1) != 0; }
  constexpr uint64_t offset() const { return bits_ >> 50 << 3; }
  // The CFA by a plain rule. Written out, because compilers make a branch of it, and one that is
  // mispredicted costs more than a frame.
  uintptr_t cfa(uintptr_t fp, uintptr_t sp) const {
    uintptr_t base;
    asm("tst %1, #0x100000000\n\tcsel %0, %2, %3, ne"
        : "=r"(base)
        : "r"(bits_), "r"(fp), "r"(sp)
        : "cc");
    return base + offset();
  }
  // How many words below the CFA everything that is saved lies.
  constexpr uint64_t reach() const { return slot() + (saves_fp() ? 1 : 0); }
  // Where a frame whose CFA is `above` has the return address, and the caller's x29 if saves_fp().
  // Otherwise fp_slot() is some word that can be read.
  const uintptr_t* return_slot(const uintptr_t* above) const { return above - slot(); }
  const uintptr_t* fp_slot(const uintptr_t* above) const { return above - reach(); }
  constexpr bool saves_fp() const { return (bits_ >> 35 & 1) != 0; }

  // Marks a plain rule as one for a frame of Python's evaluation loop or of this library, and back.
  constexpr bool is_marked() const { return (bits_ & kMark) != 0 && !is_plain(); }
  constexpr Rule marked() const { return is_plain() ? Rule((bits_ | kMark) & ~kPlain) : *this; }
  constexpr Rule without_mark() const { return Rule((bits_ & ~kMark) | kPlain); }

  // The place of a key in the cache; keys that are the same shifted by that share it.
  static constexpr unsigned kPlaceShift = 2;
  static constexpr uint16_t place_of(uintptr_t key) { return static_cast<uint16_t>(key >> 2); }
  // Whether it may be a key, if it is below kKeyEnd.
  static constexpr bool is_key(uintptr_t key) { return (key & 2) == 0; }

  // The rule with the tag of `key` (below kKeyEnd), as the cache holds it.
  constexpr Rule tagged(uintptr_t key) const { return Rule((bits_ & ~kTag) | tag_of(key)); }
  constexpr bool holds_for(uintptr_t key) const {
    return (bits_ & kTag) == tag_of(key) && is_key(key);
  }
  // The key of the rule at `place` in the cache.
  constexpr uintptr_t key_at(uintptr_t place) const {
    return (bits_ & kTag & ~kExact) << 18 | place << 2 | (bits_ & kExact) >> 30;
  }
  // The rule is plain and holds for `key`, a return address below kKeyEnd: one comparison, and
  // false for what is no multiple of 4 (its last bits come to lie above the tag).
  constexpr bool is_plain_for(uintptr_t key) const {
    return static_cast<uint32_t>(bits_) == ((key >> 2 | key << 62) >> 16) + kPlain;
  }

 private:
  static constexpr uint64_t kExact = uint64_t{1} << 30;
  static constexpr uint64_t kTag = (uint64_t{1} << 31) - 1;
  static constexpr uint64_t kPlain = uint64_t{1} << 31;
  static constexpr uint64_t kMark = uint64_t{1} << 36;
  static constexpr uint64_t tag_of(uintptr_t key) { return key >> 18 | (key & 1) << 30; }
  constexpr uint64_t slot() const { return bits_ >> 37 & kMaxSlot; }
  uint64_t bits_ = 0;
};

}  // namespace mtrace::unwind
