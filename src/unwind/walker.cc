#include "unwind/walker.h"

#include "unwind/libunwind_walk.h"
#include "unwind/rule_cache.h"
#include "unwind/slow_walk.h"
#include "unwind/stack_memory.h"

namespace mtrace::unwind {
namespace {

bool by_libunwind = false;

}  // namespace

// The time of this loop is the latency of its chain: return address -> rule -> CFA -> return
// address. Both loads from the frame are made always and both choices are conditional moves,
// because a mispredicted branch would cost as much as a whole frame.
Walk walk(const Registers& from, uintptr_t* frames, unsigned depth) {
  if (__builtin_expect(by_libunwind, 0)) return libunwind_walk(from, frames, depth);
  const StackRange trusted = trusted_stack();
  WalkState state = {0, from.sp, from.fp, 0, frames, 0, depth};
  state.enter(from.pc);
  if (__builtin_expect(!covers(trusted, from.sp), 0)) return slow_walk(from, state);
  for (;;) {
    const Rule rule = rule_for(state.key);
    if (__builtin_expect(!rule.is_plain(), 0)) return slow_walk(from, state);
    const uintptr_t from_sp = state.sp + rule.offset();
    const uintptr_t from_fp = state.fp + rule.offset();
    const uintptr_t cfa = rule.from_rbp() ? from_fp : from_sp;
    const uintptr_t saved = cfa - rule.slot() * 8;
    if (__builtin_expect(cfa <= state.sp || cfa > trusted.high || saved < trusted.low, 0)) {
      return slow_walk(from, state);
    }
    const uintptr_t key = *reinterpret_cast<const uintptr_t*>(cfa - 8);
    const uintptr_t saved_fp = *reinterpret_cast<const uintptr_t*>(saved);
    if (__builtin_expect(key - 1 >= kKeyEnd - 1, 0)) {
      return state.result(key == 0 ? End::kBottom : End::kLost);
    }
    if (state.count == depth) return state.result(End::kDepth);
    state.fp = rule.slot() != Rule::kSameRbp ? saved_fp : state.fp;
    state.sp = cfa;
    state.enter(key);
  }
}

bool use_libunwind() {
  by_libunwind = open_libunwind();
  return by_libunwind;
}

}  // namespace mtrace::unwind
