#include "ledger/ledger.h"

namespace mtrace::ledger {

constinit Ledger g_ledger = {};

void Ledger::rebase_after_fork(uint32_t survivor, uint32_t tid) {
  const uint32_t interrupted = threads.keep_only(survivor, tid);
  if (interrupted != 0) {
    // Between a block and its counters a vanished thread may have done one and not the other. The
    // blocks decide: every stack is made to hold what its blocks say.
    stacks.for_each([](uint32_t, StackRecord& stack) {
      const Counters before = read(stack.own, stack.shared);
      stack.own = {before.freed_bytes, before.freed_blocks, before.freed_bytes,
                   before.freed_blocks};
      stack.shared = {};
    });
    blocks.repair([&](const Block& block) {
      StackRecord& stack = stacks.record(block.stack);
      stack.own.allocated_bytes += block.size;
      stack.own.allocated_blocks += 1;
    });
    lost_inflight += interrupted;
  }
  inherited = {};
  stacks.for_each([&](uint32_t, StackRecord& stack) {
    const Counters now = read(stack.own, stack.shared);
    inherited.bytes += live_bytes(now);
    inherited.blocks += live_blocks(now);
    Counters* base = reported.find(stack.ordinal);
    if (base == nullptr && now.allocated_blocks != 0) {
      base = reported.find_or_create(stack.ordinal);
    }
    if (base != nullptr && *base != now) *base = now;
  });
}

}  // namespace mtrace::ledger
