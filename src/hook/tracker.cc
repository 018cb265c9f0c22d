#include "hook/tracker.h"

#include "base/process.h"
#include "format/memlog.h"
#include "hook/module_hooks.h"
#include "hook/real.h"
#include "report/host.h"
#include "unwind/walk_memory.h"

namespace mtrace::hook {

thread_local constinit ThreadState t_thread = {};

namespace {

using ledger::g_ledger;
using unwind::End;

unsigned g_depth = 10;
uint64_t g_short_lived = 0;  // ticks

__attribute__((noinline)) uint32_t find_slot() {
  // A vfork child shares its parent thread's state but not its id, and is soon gone.
  if (t_thread.no_slot || sys::process_id() != report::g_host.pid) return 0;
  t_thread.slot = g_ledger.threads.acquire(report::g_host.pid, sys::thread_id());
  t_thread.no_slot = t_thread.slot == 0;
  if (t_thread.slot != g_ledger.threads.first()) g_ledger.peak.join(g_ledger.threads);
  return t_thread.slot;
}

// The last walk of each thread, by slot, and the stack that it led to.
struct LastWalk {
  unwind::WalkMemory memory;
  uint64_t id_and_stack;  // in one word, which no signal handler can tear; 0: none
};
constinit LastWalk g_last_walks[ledger::ThreadSlots::kMost + 1] = {};

uint32_t intern(const unwind::Walk& walk, const uintptr_t* frames, uint32_t slot) {
  return g_ledger.stacks.intern(
      {unwind::unload_epoch(), walk.hash, frames, static_cast<uint8_t>(walk.count), 0,
       walk.end == End::kDepth, walk.end == End::kLost},
      slot);
}

// The record of the stack that begins at `caller`.
uint32_t find_stack(const unwind::Registers& caller, uint32_t slot) {
  uintptr_t frames[format::kMaxDepth];
  if (__builtin_expect(slot == 0, 0)) {
    const unwind::Walk walk = unwind::walk(caller, frames, g_depth);
    if (modules_changed()) retire_unloaded();
    return intern(walk, frames, slot);
  }
  LastWalk& last = g_last_walks[slot];
  unwind::Walk walk = unwind::walk_again(caller, frames, g_depth, last.memory);
  if (__builtin_expect(modules_changed(), 0)) {
    retire_unloaded();
  } else if (walk.same) {
    const uint64_t known = load(last.id_and_stack);
    if (__builtin_expect(known >> 32 == walk.id, 1)) return static_cast<uint32_t>(known);
  }
  if (walk.same) walk = unwind::walk(caller, frames, g_depth);  // frames were left out
  const uint32_t stack = intern(walk, frames, slot);
  if (walk.id != 0) store(last.id_and_stack, uint64_t{walk.id} << 32 | stack);
  return stack;
}

// A mark for "counted" when there is no block.
const char kFailed = 0;

// The call that `counted` says was seen already by a hook nested in this one.
bool counted_before(const void* block) {
  return t_thread.counted == (block != nullptr ? block : &kFailed);
}

// An allocator that rounded a huge request past zero returned less than was asked for; what was
// asked for is then no measure of anything.
__attribute__((noinline)) size_t true_size(void* block) {
  return g_real.usable_size != nullptr ? g_real.usable_size(block) : 0;
}

void count(uint32_t slot, uint64_t& word) { ledger::add(slot != 0, word, 1); }

void count_call(uint32_t slot, Call call) {
  count(slot, g_ledger.threads.slot(slot).calls[static_cast<unsigned>(call)]);
}

void book_allocation(uint32_t slot, uint32_t stack, uint64_t size, uint64_t slack) {
  const auto [set, owner] = g_ledger.stacks.counting(g_ledger.stacks.record(stack), slot);
  g_ledger.peak.set_aside(set, owner);
  count_allocated(set, owner, size, slack);
  g_ledger.peak.changed(g_ledger.threads, slot, static_cast<int64_t>(size), 1);
}

void book_free(uint32_t slot, const ledger::Block& block, uint64_t slack, bool temporary) {
  const auto [set, owner] = g_ledger.stacks.counting(g_ledger.stacks.record(block.stack), slot);
  const uint64_t now = ledger::ticks_now();
  const uint64_t birth = ledger::unpack_ticks(block.birth);
  const uint64_t lifetime = now > birth ? now - birth : 0;
  g_ledger.peak.set_aside(set, owner);
  count_freed(set, owner, {block.size, slack, lifetime, temporary, lifetime <= g_short_lived});
  g_ledger.peak.changed(g_ledger.threads, slot, -static_cast<int64_t>(block.size), -1);
}

// Usable less requested bytes of a live block of the real allocator; 0: not known.
uint64_t slack_of(uintptr_t address, uint64_t size) {
  // An allocator may allocate to answer (tcmalloc, the first time), and must not be asked about
  // that block in turn.
  if (g_real.usable_size == nullptr || t_thread.asking) return 0;
  t_thread.asking = true;
  compiler_barrier();
  const size_t usable = g_real.usable_size(reinterpret_cast<void*>(address));
  compiler_barrier();
  t_thread.asking = false;
  return usable > size ? usable - size : 0;
}

}  // namespace

uint32_t this_slot() {
  const uint32_t slot = t_thread.slot;
  return __builtin_expect(slot != 0, 1) ? slot : find_slot();
}

void* allocated(void* block, size_t size, Call call, const unwind::Registers& caller) {
  if (counted_before(block)) {
    passed_on(call);
    return block;
  }
  if (!recording()) return block;
  const uint32_t slot = this_slot();
  if (__builtin_expect(block == nullptr, 0)) {
    t_thread.counted = &kFailed;
    count_call(slot, call);
    if (size != 0) count(slot, g_ledger.threads.slot(slot).failed_allocations);
    return nullptr;
  }
  if (__builtin_expect(size > ledger::kMostBytes, 0)) size = true_size(block);
  const auto address = reinterpret_cast<uintptr_t>(block);
  ledger::Operation operation(g_ledger.threads.slot(slot));
  count_call(slot, call);
  const uint32_t stack = find_stack(caller, slot);
  if (g_ledger.blocks.put(address, {size, stack, ledger::pack_ticks(ledger::ticks_now())})) {
    book_allocation(slot, stack, size, slack_of(address, size));
  }
  t_thread.counted = block;  // last, as the allocator may have allocated to tell the slack
  return block;
}

void freed(void* block, Call call) {
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  count_call(slot, call);
  const auto address = reinterpret_cast<uintptr_t>(block);
  const bool temporary = t_thread.counted == block;
  ledger::Block taken;
  if (!g_ledger.blocks.take(address, &taken)) {
    if (t_thread.moving == block) return;
    return count(slot, g_ledger.threads.slot(slot).unknown_frees);
  }
  book_free(slot, taken, slack_of(address, taken.size), temporary);
  if (temporary) t_thread.counted = nullptr;
}

void passed_on(Call call) {
  if (counting()) count_call(this_slot(), call);
}

Reallocation::Reallocation(void* block)
    : address_(reinterpret_cast<uintptr_t>(block)),
      slot_(g_ledger.blocks.reserve(address_, &block_)) {
  if (slot_ != nullptr) slack_ = slack_of(address_, block_.size);
  t_thread.moving = block;
}

void Reallocation::failed() {
  t_thread.moving = nullptr;
  if (slot_ != nullptr) g_ledger.blocks.restore(slot_, address_, block_);
}

void Reallocation::succeeded() {
  t_thread.moving = nullptr;
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  if (slot_ == nullptr) return count(slot, g_ledger.threads.slot(slot).unknown_frees);
  g_ledger.blocks.release(slot_);
  book_free(slot, block_, slack_, false);
}

void set_depth(unsigned depth) { g_depth = depth; }
void set_short_lived(uint64_t milliseconds) {
  g_short_lived = milliseconds * 1'000'000u >> ledger::kTickShift;
}

}  // namespace mtrace::hook
