#include "record/call_stack.h"

#include <link.h>

#include <algorithm>
#include <iterator>

#include "base/syscall.h"
#include "format/memlog.h"
#include "ledger/ledger.h"
#include "modules/c_library.h"
#include "modules/modules.h"
#include "modules/object.h"
#include "python/runtime.h"
#include "record/call_form.h"
#include "record/recorder.h"
#include "unwind/last_walk.h"

namespace mtrace::record {

constinit unwind::WalkMemory g_known_walks[ledger::ThreadSlots::kMost + 1] = {};

namespace {

unsigned g_depth = format::kMaxDepth;

using ledger::g_ledger;
using unwind::End;

// Equal frames of another kind or form, expressed by `other`, are another stack.
[[gnu::flatten]] uint32_t intern(const unwind::Walk& walk, const uintptr_t* frames, uint32_t slot,
                                 uint64_t other, uint8_t call, uint8_t kind = 0,
                                 unwind::LastWalk* last = nullptr) {
  if (modules_changed()) [[unlikely]]
    retire_unloaded();
  const uint64_t hash = other == 0 ? walk.hash : format::mix64(walk.hash + other);
  return g_ledger.stacks.intern({.epoch = modules::unload_epoch(),
                                 .hash = hash,
                                 .frames = frames,
                                 .depth = static_cast<uint16_t>(walk.count),
                                 .kind = kind,
                                 .cut = walk.end == End::kDepth,
                                 .lost = walk.end == End::kLost,
                                 .call = call,
                                 .guessed = walk.guessed,
                                 .shared = static_cast<uint8_t>(last ? last->shared() : 0),
                                 .tails = last ? last->tails() : nullptr},
                                slot);
}

uint32_t intern(const unwind::Walk& walk, const uintptr_t* frames, uint32_t slot, uint64_t form,
                unwind::LastWalk* last = nullptr) {
  return intern(walk, frames, slot, form, call_of(form), 0, last);
}

// What a walk writes to. Not on the thread's stack, which may be small.
struct Room {
  uint32_t taken;
  uint32_t tail;  // of the last walk's stack: its innermost piece
  unsigned near;  // grows with each walk that has the tail of the one before, else shrinks
  bool deep;      // the last walk was one of more words than known walks have
  uintptr_t frames[format::kMaxDepth];
  unwind::StackWord words[unwind::WalkDraft::most_words(unwind::WalkDraft::kMostFrames)];
  uint64_t python[unwind::WalkDraft::kMostPython + 1];
  unwind::LastWalk* last;  // mapped when it is first wanted

  static constexpr unsigned kNear = 8;  // enough for most walks to meet the last one
  void compare(uint32_t stack) {
    const uint32_t before = tail;
    tail = g_ledger.stacks.record(stack).tail;
    if (tail != 0 && tail == before) {
      near = std::min(near + 1, 2 * kNear);
    } else if (near != 0) {
      --near;
    }
  }
};
// By slots. A walk that another thread or a signal handler interrupts keeps its own; so may one
// that a handler leaves by longjmp, for good.
constinit Room g_rooms[16] = {};

[[gnu::noinline]] uint32_t walk_alone(uintptr_t* frames, const unwind::Registers& caller,
                                      uint32_t slot, uint64_t form) {
  const unwind::Walk walk = unwind::walk(caller, frames, g_depth);
  return intern(walk, frames, slot, form);
}

[[gnu::noinline]] uint32_t walk_up_to_last(Room& room, const unwind::Registers& caller,
                                           uint32_t slot, uint64_t form) {
  if (room.last == nullptr) {
    room.last = static_cast<unwind::LastWalk*>(base::map_memory(sizeof(unwind::LastWalk)));
    if (room.last == nullptr) return walk_alone(room.frames, caller, slot, form);
  }
  unwind::LastWalk& last = *room.last;
  const unwind::Walk walk = unwind::walk_to_last(caller, room.frames, g_depth, last);
  const uint32_t index = intern(walk, room.frames, slot, form, &last);
  const ledger::StackRecord& stack = g_ledger.stacks.record(index);
  if (last.kept() && stack.depth() == walk.count) {
    g_ledger.stacks.tails_of(stack, last.tails(), last.shared());
    last.set_tails(stack.tails);
  }
  room.deep = last.kept() && walk.count > unwind::WalkDraft::kMostFrames;
  return index;
}

[[gnu::noinline]] uint32_t walk_noted(Room& room, const unwind::Registers& caller, uint32_t slot,
                                      uint64_t form) {
  const unsigned python = unwind::python_runtime() == nullptr ? 0 : unwind::WalkDraft::kMostPython;
  unwind::WalkDraft draft(caller, room.words, std::size(room.words), room.python, python);
  const unwind::Walk walk = unwind::walk_and_note(room.frames, g_depth, draft);
  const uint32_t stack = intern(walk, room.frames, slot, form);
  ledger::CounterSet& set = g_ledger.stacks.counting(g_ledger.stacks.record(stack), slot).set;
  g_known_walks[slot].remember(draft, g_depth, stack, &set, form);
  room.deep = !draft.whole() && walk.count > unwind::WalkDraft::kMostFrames;
  return stack;
}

[[gnu::noinline]] uint32_t walk_in(Room& room, const unwind::Registers& caller, uint32_t slot,
                                   uint64_t form) {
  const bool near = room.near >= Room::kNear;
  // Walks outside the thread's trusted stack are not remembered.
  const bool noted = slot != 0 && !(near && room.deep) &&
                     unwind::covers(unwind::trusted_stack(), caller.sp) &&
                     g_known_walks[slot].is_worthwhile(near);
  const uint32_t stack = noted  ? walk_noted(room, caller, slot, form)
                         : near ? walk_up_to_last(room, caller, slot, form)
                                : walk_alone(room.frames, caller, slot, form);
  room.compare(stack);
  return stack;
}

[[gnu::noinline]] uint32_t walk_on_stack(const unwind::Registers& caller, uint32_t slot,
                                         uint64_t form) {
  uintptr_t frames[format::kMaxDepth];
  return walk_alone(frames, caller, slot, form);
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
                        uint32_t form) {
  uintptr_t frames[format::kMaxDepth];
  const unwind::Walk walk = unwind::walk(caller, frames, g_depth);
  const uint64_t other = kind + (uint64_t{call} << 8) + (uint64_t{form} << 16);
  const uint32_t index = intern(walk, frames, 0, other, call, static_cast<uint8_t>(kind));
  // The record for stacks that found no room is a heap stack, and stays one.
  if (g_ledger.stacks.record(index).kind != kind) return 0;
  if (form != 0) ledger::set_mapping_form(g_ledger.stacks.record(index), form);
  return index;
}

void forget_walks() {
  for (unwind::WalkMemory& memory : g_known_walks) memory.forget();
  for (Room& room : g_rooms) {
    if (room.last != nullptr) room.last->forget();
  }
}

void set_depth(unsigned depth) { g_depth = depth; }

uint32_t g_seen_epoch = 0;
uintptr_t g_loader_begin = 0;
size_t g_loader_size = 0;

namespace {

void retire(uintptr_t begin, uintptr_t end, uint32_t epoch, void*) {
  ledger::g_ledger.stacks.retire(begin, end, epoch);
}

bool is_same(const modules::Module* a, const modules::Module* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a == b ||
         (a->base == b->base && a->identity == b->identity && a->generation == b->generation);
}

}  // namespace

bool modules_came_back(const ledger::StackRecord& stack) {
  const uint32_t retired = load(stack.retired);
  bool back = true;
  ledger::g_ledger.stacks.each_frame(stack, [&](unsigned, uintptr_t frame) {
    if (!back) return;
    const modules::Module* now = modules::find_module(frame, modules::kAlive, nullptr);
    back = (now == nullptr || now->first < retired) &&  // otherwise loaded later than that
           is_same(modules::find_module(frame, retired, nullptr), now);
  });
  return back;
}

void find_loader() {
  if (!modules::is_glibc()) return;  // musl's dlclose unloads nothing
  modules::Object loader;
  if (!modules::locate_object(modules::loader_state().r_ldbase, &loader)) return;
  g_loader_begin = loader.start;
  g_loader_size = loader.end - loader.start;
}

void look_for_unloaded() {
  if (counting() && modules::any_unloaded()) retire_unloaded();
}

void retire_unloaded() { store(g_seen_epoch, modules::forget_unloaded(retire, nullptr)); }

}  // namespace mtrace::record
