#include "record/booking.h"

#include "base/hot.h"

namespace mtrace::hook {

MTRACE_HOT constinit uint64_t g_short_lived = 0;

using ledger::g_ledger;

ledger::CounterSet* own_set_slowly(const ThreadState& self, uint32_t stack) {
  ledger::StackRecord& record = g_ledger.stacks.record(stack);
  ledger::CounterSet* own = &record.own;
  if (owner_of(*own) != self.slot) {
    const uint32_t later = g_ledger.stacks.later_set(record, self.slot);
    if (later == 0) return nullptr;
    uint32_t& known = self.place->known_sets;
    if (load(known) == 0) store(known, g_ledger.stacks.make_known_sets());
    if (load(known) != 0) g_ledger.stacks.known_sets(known).remember(stack, later);
    own = &g_ledger.stacks.set(later);
  }
  g_ledger.peak.set_aside(*own, true);
  return own;
}

void book_allocation_apart(uint32_t slot, ledger::StackRecord& stack, uint64_t bytes,
                           uint64_t blocks, uint64_t slack) {
  const auto [set, owner] = g_ledger.stacks.counting(stack, slot);
  g_ledger.peak.set_aside(set, owner);
  count_allocated(set, owner, {bytes, blocks, slack});
  g_ledger.peak.changed(g_ledger.threads, slot, static_cast<int64_t>(bytes),
                        static_cast<int64_t>(blocks));
}

void book_free_apart(uint32_t slot, ledger::StackRecord& stack, const ledger::Freed& freed) {
  const auto [set, owner] = g_ledger.stacks.counting(stack, slot);
  g_ledger.peak.set_aside(set, owner);
  count_freed(set, owner, freed);
  g_ledger.peak.changed(g_ledger.threads, slot, -static_cast<int64_t>(freed.bytes),
                        -static_cast<int64_t>(freed.blocks));
}

}  // namespace mtrace::hook
