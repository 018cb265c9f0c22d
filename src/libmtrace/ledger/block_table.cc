#include "ledger/block_table.h"

namespace mtrace::ledger {

bool BlockTable::put_in_hash(uintptr_t address, Block block) { return hash_.put(address, block); }

Block BlockTable::take_from_hash(uintptr_t address) {
  Block block;
  return hash_.take(address, &block) ? block : Block{};
}

bool BlockTable::put_beside(HeapShadow::Put put, uintptr_t address, Block block) {
  if (put == HeapShadow::Put::kTaken) return hash_.put(address, block);
  hash_.count_lost();
  return true;
}

}  // namespace mtrace::ledger
