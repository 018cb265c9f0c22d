#include "ledger/block_table.h"

namespace mtrace::ledger {

OnMissedFree g_on_missed_free = nullptr;

// A free searches the shadow first: it must not find an older small block of the same address.
void BlockTable::drop_from_shadow(uintptr_t address) {
  uint64_t* const word = shadow_.find(address);
  if (word != nullptr && HeapShadow::holds(load(*word), address)) [[unlikely]] {
    missed_free(address, HeapShadow::take(*word, address));
  }
}

bool BlockTable::put_in_hash(uintptr_t address, Block block) {
  drop_from_shadow(address);
  return hash_.put(address, block);
}

bool BlockTable::put_sample(uintptr_t address, const Block& block) {
  drop_from_shadow(address);
  return hash_.put_sample(address, block);
}

Block BlockTable::take_from_hash(uintptr_t address) {
  Block block;
  return hash_.take(address, &block) ? block : Block{};
}

bool BlockTable::put_beside(HeapShadow::Put put, uintptr_t address, Block block) {
  return put == HeapShadow::Put::kReplaced || hash_.put(address, block);
}

}  // namespace mtrace::ledger
