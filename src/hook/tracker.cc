#include "hook/tracker.h"

#include "base/process.h"
#include "format/memlog.h"
#include "hook/module_hooks.h"
#include "hook/real.h"
#include "report/host.h"

namespace mtrace::hook {

thread_local constinit ThreadState t_thread = {};

namespace {

using ledger::g_ledger;
using unwind::End;

unsigned g_depth = 10;

__attribute__((noinline)) uint32_t find_slot() {
  // A vfork child shares its parent thread's state but not its id, and is soon gone.
  if (t_thread.no_slot || sys::process_id() != report::g_host.pid) return 0;
  t_thread.slot = g_ledger.threads.acquire(report::g_host.pid, sys::thread_id());
  t_thread.no_slot = t_thread.slot == 0;
  return t_thread.slot;
}

uint32_t this_slot() {
  const uint32_t slot = t_thread.slot;
  return __builtin_expect(slot != 0, 1) ? slot : find_slot();
}

// An allocator that rounded a huge request past zero returned less than was asked for; what was
// asked for is then no measure of anything.
__attribute__((noinline)) size_t true_size(void* block) {
  return g_real.malloc_usable_size != nullptr ? g_real.malloc_usable_size(block) : 0;
}

void book_free(const ledger::Block& block, uint32_t slot) {
  ledger::StackRecord& stack = g_ledger.stacks.record(block.stack);
  count_freed(stack.own, stack.shared, slot != 0 && stack.owner == slot, block.size);
}

}  // namespace

void* allocated(void* block, size_t size, const unwind::Registers& caller) {
  if (block == nullptr || !counting() || t_thread.counted == block) return block;
  if (__builtin_expect(size > ledger::kMostBytes, 0)) size = true_size(block);
  uintptr_t frames[format::kMaxDepth];
  const unwind::Walk walk = unwind::walk(caller, frames, g_depth);
  if (__builtin_expect(modules_changed(), 0)) retire_unloaded();
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  const uint32_t stack = g_ledger.stacks.intern(
      {unwind::unload_epoch(), walk.hash, frames, static_cast<uint16_t>(walk.count),
       walk.end == End::kDepth, walk.end == End::kLost},
      slot);
  if (g_ledger.blocks.put(reinterpret_cast<uintptr_t>(block), {size, stack})) {
    ledger::StackRecord& record = g_ledger.stacks.record(stack);
    count_allocated(record.own, record.shared, slot != 0 && record.owner == slot, size);
  }
  t_thread.counted = block;
  return block;
}

void freed(const void* block) {
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  ledger::Block taken;
  if (!g_ledger.blocks.take(reinterpret_cast<uintptr_t>(block), &taken)) return;
  book_free(taken, slot);
}

Reallocation::Reallocation(const void* block)
    : address_(reinterpret_cast<uintptr_t>(block)),
      slot_(g_ledger.blocks.reserve(address_, &block_)) {}

void Reallocation::failed() {
  if (slot_ != nullptr) g_ledger.blocks.restore(slot_, address_, block_);
}

void Reallocation::succeeded() {
  if (slot_ == nullptr) return;
  const uint32_t slot = this_slot();
  ledger::Operation operation(g_ledger.threads.slot(slot));
  g_ledger.blocks.release(slot_);
  book_free(block_, slot);
}

void set_depth(unsigned depth) { g_depth = depth; }

}  // namespace mtrace::hook
