#include "unwind/walker.h"

#include <bit>

#include "unwind/libunwind_walk.h"
#include "unwind/rule_cache.h"
#include "unwind/slow_walk.h"
#include "unwind/stack_memory.h"

namespace mtrace::unwind {
namespace {

bool by_libunwind = false;

// `yes` if bit 32 of the rule (from_rbp) is set. Written out, because compilers make a branch of
// it, and one that is mispredicted costs more than a frame.
inline uintptr_t choose_by_base(Rule rule, uintptr_t yes, uintptr_t no) {
  asm("btq $32, %1\n\tcmovcq %2, %0" : "+r"(no) : "r"(rule.bits()), "r"(yes) : "cc");
  return no;
}

}  // namespace

// The time of the loop is the latency of its chain: return address -> rule -> CFA -> return
// address. Both words of the frame are loaded always, so that nothing waits for a decision.
Walk walk(const Registers& from, uintptr_t* frames, unsigned depth) {
  if (__builtin_expect(by_libunwind, 0)) return libunwind_walk(from, frames, depth);
  const StackRange trusted = trusted_stack();
  uintptr_t key = from.pc;
  uintptr_t sp = from.sp;
  uintptr_t fp = from.fp;
  uintptr_t* next = frames;
  uint64_t hash = add_to_hash(0, key);
  *next++ = key - 1;
  auto state = [&] {
    return WalkState{key, sp, fp, hash, frames, static_cast<uint32_t>(next - frames), depth};
  };
  Rule rule = rule_for(key);
  if (__builtin_expect(!covers(trusted, sp) || !rule.is_plain(), 0)) {
    return slow_walk(from, state());
  }
  for (;;) {
    const uintptr_t cfa = choose_by_base(rule, fp + rule.offset(), sp + rule.offset());
    const auto* const above = reinterpret_cast<const uintptr_t*>(cfa);
    // Both words lie between sp and the trusted end: as the distance from sp in words, because a
    // damaged rbp may make the CFA wrap around. Rotated, one that is not whole words is too large.
    const uintptr_t words = std::rotr(cfa - sp, 3);
    if (__builtin_expect(words > (trusted.high - sp) / sizeof(uintptr_t), 0)) break;
    if (__builtin_expect(words < rule.slot(), 0)) break;
    const uintptr_t caller = above[-1];
    const uintptr_t saved_fp = *(above - Rule::kMaxSlot + rule.slot_up());
    if (next == frames + depth) {
      const bool more = caller - 1 < kKeyEnd - 1;
      return state().result(more ? End::kDepth : caller == 0 ? End::kBottom : End::kLost);
    }
    fp = rule.slot_up() != Rule::kMaxSlot - Rule::kSameRbp ? saved_fp : fp;
    sp = cfa;
    rule = cached_rule(caller);
    const bool plain = rule.is_plain_for(caller);
    if (__builtin_expect(!plain && caller - 1 >= kKeyEnd - 1, 0)) {
      return state().result(caller == 0 ? End::kBottom : End::kLost);
    }
    key = caller;
    hash = add_to_hash(hash, key);
    *next++ = key - 1;
    if (__builtin_expect(plain, 1)) continue;
    rule = rule_for(key);
    if (!rule.is_plain()) break;
  }
  return slow_walk(from, state());
}

bool use_libunwind() {
  by_libunwind = open_libunwind();
  return by_libunwind;
}

}  // namespace mtrace::unwind
