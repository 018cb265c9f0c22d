#include "hook/call_stack.h"

#include <algorithm>

#include "format/memlog.h"
#include "hook/module_hooks.h"
#include "ledger/ledger.h"

namespace mtrace::hook {

constinit unwind::WalkMemory g_known_walks[ledger::ThreadSlots::kMost + 1] = {};
unsigned g_depth = 10;

namespace {

using ledger::g_ledger;
using unwind::End;

__attribute__((flatten)) uint32_t intern(const unwind::Walk& walk, const uintptr_t* frames,
                                         uint32_t slot) {
  return g_ledger.stacks.intern(
      {unwind::unload_epoch(), walk.hash, frames, static_cast<uint8_t>(walk.count), 0,
       walk.end == End::kDepth, walk.end == End::kLost},
      slot);
}

// With room for so many frames: a thread's stack may be small.
template <unsigned kFrames>
__attribute__((noinline)) uint32_t walk_with_room(const unwind::Registers& caller, uint32_t slot) {
  uintptr_t frames[kFrames];
  if (slot == 0) {
    const unwind::Walk walk = unwind::walk(caller, frames, g_depth);
    if (modules_changed()) retire_unloaded();
    return intern(walk, frames, slot);
  }
  unwind::WalkMemory& memory = g_known_walks[slot];
  if (!memory.is_worthwhile()) {
    const unwind::Walk walk = unwind::walk(caller, frames, g_depth);
    if (__builtin_expect(modules_changed(), 0)) retire_unloaded();
    return intern(walk, frames, slot);
  }
  constexpr unsigned kNoted =
      unwind::WalkDraft::most_words(std::min(kFrames, unwind::WalkDraft::kMostFrames));
  unwind::StackWord words[kNoted];
  unwind::WalkDraft draft(caller, words, kNoted);
  const unwind::Walk walk = unwind::walk_and_note(frames, g_depth, draft);
  if (__builtin_expect(modules_changed(), 0)) retire_unloaded();
  const uint32_t stack = intern(walk, frames, slot);
  memory.remember(draft, g_depth, stack);
  return stack;
}

}  // namespace

uint32_t walk_to_stack(const unwind::Registers& caller, uint32_t slot) {
  constexpr unsigned kFew = 16;
  return g_depth <= kFew ? walk_with_room<kFew>(caller, slot)
                         : walk_with_room<format::kMaxDepth>(caller, slot);
}

void forget_walks() {
  for (unwind::WalkMemory& memory : g_known_walks) memory.forget();
}

void set_depth(unsigned depth) { g_depth = depth; }

}  // namespace mtrace::hook
