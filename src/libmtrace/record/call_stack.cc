#include "record/call_stack.h"

#include "base/syscall.h"
#include "format/memlog.h"
#include "ledger/ledger.h"
#include "ledger/stack_counters.h"
#include "python/runtime.h"
#include "record/call_form.h"
#include "record/unloading.h"

namespace mtrace::hook {

constinit unwind::WalkMemory g_known_walks[ledger::ThreadSlots::kMost + 1] = {};

namespace {

unsigned g_depth = 10;

// A choice of depth by what the stacks so far need (set_depth(0)).
struct DepthChoice {
  static constexpr unsigned kMost = 64;
  static constexpr unsigned kDepths[] = {16, 32, 48, kMost};
  static constexpr unsigned kCount = sizeof kDepths / sizeof *kDepths;
  static constexpr unsigned kEach = 64;  // cut stacks

  bool on;
  uint32_t cut;            // stacks counted
  uint32_t whole[kCount];  // of these, at that depth
};
constinit DepthChoice g_choice = {};

using ledger::g_ledger;
using unwind::End;

// If most of the stacks that were cut so far would be whole at the largest depth: the smallest at
// which nearly as many are. It only grows, so a stack is kept at few depths.
void choose_depth(unsigned whole) {
  constexpr unsigned kCount = DepthChoice::kCount;
  for (unsigned i = 0; i < kCount; ++i) {
    if (whole <= DepthChoice::kDepths[i]) fetch_add(g_choice.whole[i], 1u);
  }
  const uint32_t cut = fetch_add(g_choice.cut, 1u) + 1;
  const uint32_t most = load(g_choice.whole[kCount - 1]);
  if (cut % DepthChoice::kEach != 0 || most < cut / 2) return;
  unsigned i = 0;
  while (load(g_choice.whole[i]) < most - most / 10) ++i;
  if (DepthChoice::kDepths[i] > load(g_depth)) store(g_depth, DepthChoice::kDepths[i]);
}

// Counts the frames of a stack that was cut, when it is new. Not of each where stacks are many: a
// walk to the end of a deep stack costs several times what the stack did.
[[gnu::noinline]] void count_frames(const unwind::Registers& caller, uint32_t slot,
                                    ledger::StackRecord& stack) {
  constexpr uint32_t kOneOf = 16;
  const uint32_t all = g_choice.on ? 1024 : 128;
  if (slot == 0 || (stack.ordinal > all && stack.ordinal % kOneOf != 0)) return;
  uintptr_t* const frames = g_known_walks[slot].deep_frames();
  if (frames == nullptr) return;
  const unwind::Walk walk = unwind::walk(caller, frames, format::kMaxDepth);
  const unsigned whole = walk.count + (walk.end == End::kDepth ? 1 : 0);
  store(stack.whole(), static_cast<uint8_t>(whole));
  if (g_choice.on) choose_depth(whole);
}

// Equal frames of another kind or form, expressed by `other`, are another stack.
[[gnu::flatten]] uint32_t intern(const unwind::Walk& walk, const uintptr_t* frames, uint32_t slot,
                                 uint64_t other, uint8_t call, bool ignored = false,
                                 uint8_t kind = 0) {
  const uint64_t hash = other == 0 ? walk.hash : format::mix64(walk.hash + other);
  return g_ledger.stacks.intern({.epoch = unwind::unload_epoch(),
                                 .hash = hash,
                                 .frames = frames,
                                 .depth = static_cast<uint8_t>(walk.count),
                                 .kind = kind,
                                 .cut = walk.end == End::kDepth,
                                 .lost = walk.end == End::kLost,
                                 .call = call,
                                 .guessed = walk.guessed,
                                 .ignored = ignored},
                                slot);
}

uint32_t intern(const unwind::Registers& caller, const unwind::Walk& walk, const uintptr_t* frames,
                uint32_t slot, uint64_t form) {
  const uint32_t index =
      intern(walk, frames, slot, form, call_of(form), (form & kIgnoredForm) != 0);
  if (walk.end == End::kDepth) [[unlikely]] {
    ledger::StackRecord& stack = g_ledger.stacks.record(index);
    if (stack.depth != 0 && load(stack.whole()) == 0) count_frames(caller, slot, stack);
  }
  return index;
}

// How many frames to keep where there is this room: choose_depth() may have come in between.
unsigned depth_within(unsigned room) {
  const unsigned depth = load(g_depth);
  return depth < room ? depth : room;
}

// Each instance has room for kFrames frames only, because a thread's stack may be small.
template <unsigned kFrames>
[[gnu::noinline]] uint32_t walk_unnoted(const unwind::Registers& caller, uint32_t slot,
                                        uint64_t form) {
  uintptr_t frames[kFrames];
  const unwind::Walk walk = unwind::walk(caller, frames, depth_within(kFrames));
  if (modules_changed()) [[unlikely]]
    retire_unloaded();
  return intern(caller, walk, frames, slot, form);
}
// `kPython`: room for Python functions; 0 in a process without Python.
template <unsigned kFrames, unsigned kWords, unsigned kPython>
[[gnu::noinline]] uint32_t walk_noted(const unwind::Registers& caller, uint32_t slot,
                                      uint64_t form) {
  uintptr_t frames[kFrames];
  unwind::StackWord words[kWords];
  uint64_t python[kPython + 1];
  unwind::WalkDraft draft(caller, words, kWords, python, kPython);
  const unwind::Walk walk = unwind::walk_and_note(frames, depth_within(kFrames), draft);
  if (modules_changed()) [[unlikely]]
    retire_unloaded();
  const uint32_t stack = intern(caller, walk, frames, slot, form);
  ledger::CounterSet& set = g_ledger.stacks.counting(g_ledger.stacks.record(stack), slot).set;
  // A walk that is deeper than the first one is remembered, too.
  const unsigned most = g_choice.on ? DepthChoice::kMost : load(g_depth);
  g_known_walks[slot].remember(draft, most, stack, &set, form);
  return stack;
}

template <unsigned kFrames, unsigned kWords>
uint32_t walk_with_room(const unwind::Registers& caller, uint32_t slot, uint64_t form) {
  // Walks outside the thread's trusted stack are not remembered.
  const bool noted = slot != 0 && (form & kIgnoredForm) == 0 &&
                     unwind::covers(unwind::trusted_stack(), caller.sp) &&
                     g_known_walks[slot].is_worthwhile();
  if (!noted) return walk_unnoted<kFrames>(caller, slot, form);
  return unwind::python_runtime() == nullptr
             ? walk_noted<kFrames, kWords, 0>(caller, slot, form)
             : walk_noted<kFrames, kWords, unwind::WalkDraft::kMostPython>(caller, slot, form);
}

}  // namespace

uint32_t walk_to_stack(const unwind::Registers& caller, uint32_t slot, uint64_t form) {
  constexpr unsigned kFew = 16;
  constexpr unsigned kSome = unwind::WalkDraft::kMostFrames;
  using unwind::WalkDraft;
  const unsigned depth = load(g_depth);
  if (depth <= kFew) return walk_with_room<kFew, WalkDraft::most_words(kFew)>(caller, slot, form);
  if (depth <= kSome)
    return walk_with_room<kSome, WalkDraft::most_words(kSome)>(caller, slot, form);
  // kSome words are enough for short walks, and for code without frame pointers.
  return walk_with_room<format::kMaxDepth, kSome>(caller, slot, form);
}

uint32_t walk_to_stack(unwind::Caller caller, uint32_t slot, uint64_t form) {
  const unwind::Registers registers = caller;
  return walk_to_stack(registers, slot, form);
}

uint32_t intern_of_kind(unsigned kind, const unwind::Registers& caller, uint8_t call,
                        uint32_t related) {
  uintptr_t frames[format::kMaxDepth];
  const unwind::Walk walk = unwind::walk(caller, frames, load(g_depth));
  if (modules_changed()) retire_unloaded();
  const uint64_t other = kind + (uint64_t{call} << 8) + (uint64_t{related} << 16);
  const uint32_t index = intern(walk, frames, 0, other, call, false, static_cast<uint8_t>(kind));
  // The record for stacks that found no room is a heap stack, and stays one.
  if (g_ledger.stacks.record(index).kind != kind) return 0;
  if (related != 0) relate(g_ledger.stacks.record(index), related);
  return index;
}

void choose_walks(ThreadState& self, uint32_t slot) {
  static constinit unwind::WalkMemory none = {};
  self.walks = self.ignoring != 0 ? &none : &g_known_walks[slot];
}

void forget_walks() {
  for (unwind::WalkMemory& memory : g_known_walks) memory.forget();
}

void set_depth(unsigned depth) {
  g_choice.on = depth == 0;
  if (depth != 0) g_depth = depth;
}

}  // namespace mtrace::hook
