#include "record/unknown_frees.h"

#include "base/syscall.h"
#include "format/memlog.h"
#include "ledger/kind_names.h"
#include "ledger/ledger.h"
#include "ledger/stack_counters.h"
#include "modules/modules.h"
#include "record/call_stack.h"
#include "record/freed_chunk.h"
#include "record/sampler.h"
#include "record/tracker.h"

namespace mtrace::hook {

bool g_watching_frees = false;

namespace {

using ledger::g_ledger;

struct FreedBlock {
  uint64_t address;  // 0: none, or being written
  uint32_t stack;    // that freed it
  uint32_t births;   // g_births then: the stack is valid only in the same tables
};
constexpr size_t kPlaces = 1u << 16;
FreedBlock* g_freed;

struct Kinds {
  unsigned unknown, twice, before, missed;
} g_kinds;

FreedBlock& place_of(uintptr_t address) {
  return g_freed[(address >> 4) * 0x9e3779b97f4a7c15u >> 48 & (kPlaces - 1)];
}

// If two threads write the same place, one of the two is lost.
void remember(uintptr_t address, uint32_t stack) {
  FreedBlock& place = place_of(address);
  store_release(place.address, uint64_t{0});
  store(place.stack, stack);
  store(place.births, load(ledger::g_births));
  store_release(place.address, uint64_t{address});
}

// Returns the stack that freed the address; 0: not known.
uint32_t freed_by(uintptr_t address) {
  const FreedBlock& place = place_of(address);
  if (load_acquire(place.address) != address) return 0;
  const uint32_t stack = load_acquire(place.stack);
  const uint32_t births = load_acquire(place.births);
  return load(place.address) == address && births == load(ledger::g_births) ? stack : 0;
}

void count_one(uint32_t stack) {
  if (stack != 0) count_recorded(g_ledger.stacks.record(stack), 0);
}

}  // namespace

void watch_frees() {
  learn_freed_chunks();
  if (g_freed == nullptr) {
    g_freed = static_cast<FreedBlock*>(sys::map_sparse_memory(kPlaces * sizeof(FreedBlock)));
  }
  g_kinds = {ledger::find_or_add_kind(format::kKindUnknownFree),
             ledger::find_or_add_kind(format::kKindDoubleFree),
             ledger::find_or_add_kind(format::kKindFreedBefore),
             ledger::find_or_add_kind(format::kKindMissedFree)};
  if (g_freed == nullptr || g_kinds.missed == 0) return;
  all_may_be_recorded(true);
  store(g_watching_frees, true);
}

void stop_watching_frees() {
  if (watching_frees()) all_may_be_recorded(false);
  store(g_watching_frees, false);
}

void note_free(const void* block, bool known, const unwind::Registers& caller) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  ledger::Operation operation(g_ledger.threads.slot(this_slot()));
  const uint32_t before = known ? 0 : freed_by(address);
  if (!known) {
    const bool twice = before != 0 && is_freed_chunk(block);
    count_one(before);
    count_one(
        intern_of_kind(twice ? g_kinds.twice : g_kinds.unknown, caller, format::kNoCall, before));
  }
  const uint32_t stack = intern_of_kind(g_kinds.before, caller);
  if (stack != 0) remember(address, stack);
}

void note_missed_free(const ledger::Block& block) {
  const ledger::StackRecord& from = g_ledger.stacks.record(block.stack);
  uintptr_t frames[format::kMaxDepth];
  const unsigned depth = g_ledger.stacks.frames_of(from, frames);
  const uint32_t index = g_ledger.stacks.intern(
      {unwind::unload_epoch(), format::mix64(from.hash + g_kinds.missed), frames,
       static_cast<uint16_t>(depth), static_cast<uint8_t>(g_kinds.missed), from.cut, false,
       from.call, from.guessed},
      0);
  ledger::StackRecord& stack = g_ledger.stacks.record(index);
  if (stack.kind != g_kinds.missed) return;  // no room
  // Frames of an unloaded library keep that library's names.
  if (load(from.retired) != ledger::kInUse) store(stack.retired, load(from.retired));
  count_recorded(stack, block.size);
}

}  // namespace mtrace::hook
