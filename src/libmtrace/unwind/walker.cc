#include "unwind/walker.h"

#include <bit>

#include "base/user_dispatch.h"
#include "cfi/registers.h"
#include "python/frames.h"
#include "unwind/libunwind_walk.h"
#include "unwind/rule_cache.h"
#include "unwind/slow_walk.h"
#include "unwind/stack_memory.h"
#include "unwind/walk_draft.h"

namespace mtrace::unwind {
namespace {

bool by_libunwind = false;
// Not where system calls are dispatched: libunwind makes its own.
bool is_by_libunwind() { return by_libunwind && !sys::is_dispatched(); }

// Whether the words that a walk depends on are collected: not (Unnoted), or in a draft (Noted).
struct Unnoted {
  void step(Rule, const uintptr_t*, uintptr_t, bool, const uintptr_t*, uintptr_t) const {}
  WalkDraft* python(Rule) const { return nullptr; }
  Walk ended(Walk walk) const { return walk; }
};
struct Noted {
  WalkDraft& draft;
  void step(Rule rule, const uintptr_t* returns, uintptr_t caller, bool saved,
            const uintptr_t* slot, uintptr_t word) const {
    draft.step(rule.from_fp(), returns, caller, saved, slot, word);
  }
  WalkDraft* python(Rule rule) const {
    if (rule.from_fp()) draft.leave_out();
    return &draft;
  }
  Walk ended(Walk walk) const {
    draft.ended(walk.end);
    return walk;
  }
};

// At a frame of Python's evaluation loop, adds the functions that it runs; leaves out one of this
// library. Makes the rule a plain one. False: it is no such frame.
template <typename Notes>
inline bool enter_marked(Notes notes, Rule& rule, WalkState& state) {
  if (!rule.is_marked()) [[likely]]
    return false;
  rule = rule.without_mark();
  if (state.leave_own()) return true;
  WalkState entered = state;  // so that the loop's own stays in registers
  add_python_frames(entered, (rule.from_fp() ? state.fp : state.sp) + rule.offset(),
                    PythonAccess::kDirect, notes.python(rule));
  state = entered;
  return true;
}

// The time of the loop is the latency of its chain: return address -> rule -> CFA -> return
// address. Both words of the frame are loaded always, so that nothing waits for a decision.
template <typename Notes>
[[gnu::always_inline]] inline Walk plain_walk(Notes notes, const StackRange& trusted,
                                              const Registers& from, uintptr_t* frames,
                                              unsigned depth) {
  WalkState state = {from.pc, from.sp, from.fp, 0, frames, 0, depth, 0};
  state.enter(from.pc);
  Rule rule = rule_for(state.key);
  if (!covers(trusted, state.sp)) [[unlikely]]
    rule = Rule();
  while (rule.is_plain() || enter_marked(notes, rule, state)) [[likely]] {
      const uintptr_t cfa = rule.cfa(state.fp, state.sp);
      const auto* const above = reinterpret_cast<const uintptr_t*>(cfa);
      // Both words lie between sp and the trusted end: as the distance from sp in words, because a
      // damaged frame pointer may make the CFA wrap around. Rotated, a distance that is not whole
      // words is too large.
      const uintptr_t words = std::rotr(cfa - state.sp, 3);
      if (words > (trusted.high - state.sp) / sizeof(uintptr_t)) [[unlikely]]
        break;
      if (words < rule.reach()) [[unlikely]]
        break;
      const uintptr_t* const returns = rule.return_slot(above);
      const uintptr_t caller = code_address(*returns);
      const uintptr_t* const slot = rule.fp_slot(above);
      const uintptr_t word = *slot;
      const bool saved = rule.saves_fp();
      notes.step(rule, returns, caller, saved, slot, word);
      if (state.count == depth) {
        const bool more = caller - 1 < kKeyEnd - 1;
        const End end = more ? End::kDepth : caller == 0 ? End::kBottom : End::kLost;
        return notes.ended(state.result(end));
      }
      const Rule next = cached_rule(caller);
      const bool plain = next.is_plain_for(caller);
      if (!plain && caller - 1 >= kKeyEnd - 1) [[unlikely]] {
        return notes.ended(state.result(caller == 0 ? End::kBottom : End::kLost));
      }
      state.fp = saved ? word : state.fp;
      state.sp = cfa;
      state.enter(caller);
      rule = next;
      if (!plain) [[unlikely]]
        rule = rule_for(caller);
    }
  if (rule.kind() == RuleKind::kBottom) return notes.ended(state.result(End::kBottom));
  return slow_walk(from, state);
}

}  // namespace

Walk walk(const Registers& from, uintptr_t* frames, unsigned depth) {
  if (is_by_libunwind()) [[unlikely]]
    return libunwind_walk(from, frames, depth);
  return plain_walk(Unnoted(), trusted_stack(), from, frames, depth);
}

Walk walk_and_note(uintptr_t* frames, unsigned depth, WalkDraft& draft) {
  if (is_by_libunwind()) [[unlikely]]
    return libunwind_walk(draft.from(), frames, depth);
  return plain_walk(Noted{draft}, trusted_stack(), draft.from(), frames, depth);
}

bool use_libunwind() {
  by_libunwind = open_libunwind();
  return by_libunwind;
}

}  // namespace mtrace::unwind
