#include "record/call_stack.h"

#include <iterator>

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

unsigned g_depth = format::kMaxDepth;

using ledger::g_ledger;
using unwind::End;

// Equal frames of another kind or form, expressed by `other`, are another stack.
[[gnu::flatten]] uint32_t intern(const unwind::Walk& walk, const uintptr_t* frames, uint32_t slot,
                                 uint64_t other, uint8_t call, bool ignored = false,
                                 uint8_t kind = 0) {
  const uint64_t hash = other == 0 ? walk.hash : format::mix64(walk.hash + other);
  return g_ledger.stacks.intern({.epoch = unwind::unload_epoch(),
                                 .hash = hash,
                                 .frames = frames,
                                 .depth = static_cast<uint16_t>(walk.count),
                                 .kind = kind,
                                 .cut = walk.end == End::kDepth,
                                 .lost = walk.end == End::kLost,
                                 .call = call,
                                 .guessed = walk.guessed,
                                 .ignored = ignored},
                                slot);
}

uint32_t intern(const unwind::Walk& walk, const uintptr_t* frames, uint32_t slot, uint64_t form) {
  return intern(walk, frames, slot, form, call_of(form), (form & kIgnoredForm) != 0);
}

// What a walk writes to. Not on the thread's stack, which may be small.
struct Room {
  uint32_t taken;
  uintptr_t frames[format::kMaxDepth];
  unwind::StackWord words[unwind::WalkDraft::most_words(unwind::WalkDraft::kMostFrames)];
  uint64_t python[unwind::WalkDraft::kMostPython + 1];
};
// By slots. A walk that another thread or a signal handler interrupts keeps its own; so may one
// that a handler leaves by longjmp, for good.
constinit Room g_rooms[16] = {};

uint32_t walk_unnoted(Room& room, const unwind::Registers& caller, uint32_t slot, uint64_t form) {
  const unwind::Walk walk = unwind::walk(caller, room.frames, g_depth);
  if (modules_changed()) [[unlikely]]
    retire_unloaded();
  return intern(walk, room.frames, slot, form);
}

uint32_t walk_noted(Room& room, const unwind::Registers& caller, uint32_t slot, uint64_t form) {
  const unsigned python = unwind::python_runtime() == nullptr ? 0 : unwind::WalkDraft::kMostPython;
  unwind::WalkDraft draft(caller, room.words, std::size(room.words), room.python, python);
  const unwind::Walk walk = unwind::walk_and_note(room.frames, g_depth, draft);
  if (modules_changed()) [[unlikely]]
    retire_unloaded();
  const uint32_t stack = intern(walk, room.frames, slot, form);
  ledger::CounterSet& set = g_ledger.stacks.counting(g_ledger.stacks.record(stack), slot).set;
  g_known_walks[slot].remember(draft, g_depth, stack, &set, form);
  return stack;
}

[[gnu::noinline]] uint32_t walk_in(Room& room, const unwind::Registers& caller, uint32_t slot,
                                   uint64_t form) {
  // Walks outside the thread's trusted stack are not remembered.
  const bool noted = slot != 0 && (form & kIgnoredForm) == 0 &&
                     unwind::covers(unwind::trusted_stack(), caller.sp) &&
                     g_known_walks[slot].is_worthwhile();
  return noted ? walk_noted(room, caller, slot, form) : walk_unnoted(room, caller, slot, form);
}

[[gnu::noinline]] uint32_t walk_on_stack(const unwind::Registers& caller, uint32_t slot,
                                         uint64_t form) {
  Room room;
  return walk_in(room, caller, slot, form);
}

}  // namespace

uint32_t walk_to_stack(const unwind::Registers& caller, uint32_t slot, uint64_t form) {
  Room& room = g_rooms[slot % std::size(g_rooms)];
  if (exchange(room.taken, 1u) != 0) return walk_on_stack(caller, slot, form);
  const uint32_t stack = walk_in(room, caller, slot, form);
  store_release(room.taken, 0u);
  return stack;
}

uint32_t walk_to_stack(unwind::Caller caller, uint32_t slot, uint64_t form) {
  const unwind::Registers registers = caller;
  return walk_to_stack(registers, slot, form);
}

uint32_t intern_of_kind(unsigned kind, const unwind::Registers& caller, uint8_t call,
                        uint32_t related) {
  uintptr_t frames[format::kMaxDepth];
  const unwind::Walk walk = unwind::walk(caller, frames, g_depth);
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

void set_depth(unsigned depth) { g_depth = depth; }

}  // namespace mtrace::hook
