#include "hook/call_stack.h"

#include "base/syscall.h"
#include "format/memlog.h"
#include "hook/module_hooks.h"
#include "ledger/ledger.h"

namespace mtrace::hook {

LastWalk* g_last_walks = nullptr;
unsigned g_depth = 10;

namespace {

constexpr size_t kWalks = ledger::ThreadSlots::kMost + 1;

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
  LastWalk& last = g_last_walks[slot];
  const unwind::Walk walk = last.memory.is_worthwhile()
                                ? unwind::walk_and_remember(caller, frames, g_depth, last.memory)
                                : unwind::walk(caller, frames, g_depth);
  if (__builtin_expect(modules_changed(), 0)) retire_unloaded();
  const uint32_t stack = intern(walk, frames, slot);
  if (walk.id != 0) store(last.id_and_stack, uint64_t{walk.id} << 32 | stack);
  return stack;
}

}  // namespace

uint32_t walk_to_stack(const unwind::Registers& caller, uint32_t slot) {
  constexpr unsigned kFew = 16;
  return g_depth <= kFew ? walk_with_room<kFew>(caller, slot)
                         : walk_with_room<format::kMaxDepth>(caller, slot);
}

void forget_walks() {
  for (size_t i = 0; i < kWalks; ++i) {
    LastWalk& last = g_last_walks[i];
    if (last.id_and_stack != 0) last.id_and_stack = 0;  // most pages were never touched
  }
}

bool make_walks() {
  if (g_last_walks == nullptr) {
    g_last_walks = static_cast<LastWalk*>(sys::map_sparse_memory(kWalks * sizeof(LastWalk)));
  }
  return g_last_walks != nullptr;
}

void set_depth(unsigned depth) { g_depth = depth; }

}  // namespace mtrace::hook
