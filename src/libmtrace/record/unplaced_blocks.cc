#include "record/unplaced_blocks.h"

#include "ledger/ledger.h"
#include "record/usable_size.h"

namespace mtrace::hook {

using ledger::g_ledger;

ledger::Weight unplaced_weight(void* block) {
  return g_ledger.sampling.weigh(reinterpret_cast<uintptr_t>(block),
                                 {usable_size(block), g_ledger.stacks.overflow(), 0});
}

ledger::Weight take_unplaced(void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  if (!g_ledger.unplaced.may_hold(address)) return {};
  const ledger::Weight weight = unplaced_weight(block);
  const bool taken = g_ledger.unplaced.take(address, {weight.bytes, weight.blocks});
  return taken ? weight : ledger::Weight{};
}

}  // namespace mtrace::hook
