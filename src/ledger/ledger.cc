#include "ledger/ledger.h"

namespace mtrace::ledger {

constinit Ledger g_ledger = {};

void Ledger::rebase_after_fork(uint32_t survivor, uint32_t tid) {
  const uint32_t interrupted = threads.keep_only(survivor, tid);
  if (interrupted != 0) {
    // Between a block and its counters a vanished thread may have done one and not the other. The
    // blocks decide: every stack is made to hold what its blocks say.
    stacks.for_each([](uint32_t, StackRecord& stack) {
      stack.own = {};
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
    const uint64_t bytes = now.allocated_bytes - now.freed_bytes;
    const uint64_t live_blocks = now.allocated_blocks - now.freed_blocks;
    inherited.bytes += bytes;
    inherited.blocks += live_blocks;
    Reported* base = reported.find(stack.ordinal);
    if (base == nullptr && live_blocks != 0) base = reported.find_or_create(stack.ordinal);
    if (base != nullptr && (base->live_bytes != bytes || base->live_blocks != live_blocks)) {
      *base = {bytes, live_blocks};
    }
  });
}

}  // namespace mtrace::ledger
