#include "unwind/walker.h"

#include <bit>

#include "base/filters.h"
#include "cfi/registers.h"
#include "unwind/last_walk.h"
#include "unwind/rule_cache.h"
#include "unwind/slow_walk.h"
#include "unwind/stack_memory.h"
#include "unwind/walk_draft.h"

namespace mtrace::unwind {
namespace {

bool by_libunwind = false;
// Not where system calls are dispatched: libunwind makes its own.
bool is_by_libunwind() { return by_libunwind && !base::makes_no_calls(); }

// What a walk does besides: nothing (Alone), it collects the words that it depends on in a draft
// (Noted), or it goes only to the thread's last one, and becomes that (Joining).
struct Alone {
  void step(const WalkState&, Rule, const uintptr_t*, uintptr_t) const {}
  void mark() const {}
  WalkDraft* python(Rule) const { return nullptr; }
  bool joins(const WalkState&, uintptr_t, uintptr_t, uintptr_t) const { return false; }
  Walk joined(WalkState& state) const { return state.result(End::kBottom); }
  void at_root(const WalkState&) const {}
  Walk ended(Walk walk) const { return walk; }
};
struct Noted : Alone {
  WalkDraft& draft;
  explicit Noted(WalkDraft& notes) : draft(notes) {}
  void step(const WalkState&, Rule rule, const uintptr_t* above, uintptr_t caller) const {
    const uintptr_t* const slot = rule.fp_slot(above);
    draft.step(rule.from_fp(), rule.return_slot(above), caller, rule.saves_fp(), slot, *slot);
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
struct Joining : Alone {
  LastWalk& last;
  explicit Joining(LastWalk& walk) : last(walk) {}
  void step(const WalkState& state, Rule rule, const uintptr_t*, uintptr_t) const {
    last.step(state, rule);
  }
  void mark() const { last.leave_out(); }
  bool joins(const WalkState& state, uintptr_t sp, uintptr_t key, uintptr_t fp) const {
    return last.joins(sp, key, fp, state.depth - state.count);
  }
  Walk joined(WalkState& state) const { return last.joined(state); }
  void at_root(const WalkState& state) const { last.at_root(state); }
};

// At a frame of Python's evaluation loop, adds the functions that it runs; leaves out one of this
// library. Makes the rule a plain one. False: it is no such frame.
template <typename Notes>
inline bool enter_marked(Notes notes, Rule& rule, WalkState& state) {
  if (!rule.is_marked()) [[likely]]
    return false;
  notes.mark();
  rule = rule.without_mark();
  if (state.leave_own()) return true;
  WalkState entered = state;  // so that the loop's own stays in registers
  add_python_frames(entered, (rule.from_fp() ? state.fp : state.sp) + rule.offset(), false,
                    notes.python(rule));
  state = entered;
  return true;
}

// The time of the loop is the latency of its chain: return address -> rule -> CFA -> return
// address. Both words of the frame are loaded always, so that nothing waits for a decision.
template <typename Notes>
[[gnu::always_inline]] inline Walk walk_by(Notes notes, const StackRange& trusted,
                                           const Registers& from, uintptr_t* frames,
                                           unsigned depth) {
  if (is_by_libunwind()) [[unlikely]]
    return libunwind_walk(from, frames, depth);
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
      const uintptr_t caller = cfi::code_address(*returns);
      const uintptr_t* const slot = rule.fp_slot(above);
      const uintptr_t word = *slot;
      const bool saved = rule.saves_fp();
      notes.step(state, rule, above, caller);
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
      const uintptr_t fp = saved ? word : state.fp;
      if (notes.joins(state, cfa, caller, fp)) return notes.joined(state);
      state.fp = fp;
      state.sp = cfa;
      state.enter(caller);
      rule = next;
      if (!plain) [[unlikely]]
        rule = rule_for(caller);
    }
  if (rule.kind() == RuleKind::kBottom) {
    notes.at_root(state);
    return notes.ended(state.result(End::kBottom));
  }
  return slow_walk(from, state);
}

}  // namespace

Walk walk(const Registers& from, uintptr_t* frames, unsigned depth) {
  return walk_by(Alone(), trusted_stack(), from, frames, depth);
}

Walk walk_and_note(uintptr_t* frames, unsigned depth, WalkDraft& draft) {
  return walk_by(Noted(draft), trusted_stack(), draft.from(), frames, depth);
}

Walk walk_to_last(const Registers& from, uintptr_t* frames, unsigned depth, LastWalk& last) {
  const StackRange trusted = trusted_stack();
  last.begin(trusted.high);
  return walk_by(Joining(last), trusted, from, frames, depth);
}

bool use_libunwind() {
  by_libunwind = open_libunwind();
  return by_libunwind;
}

}  // namespace mtrace::unwind
