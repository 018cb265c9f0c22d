#include "ledger/block_table.h"

namespace mtrace::ledger {

bool BlockTable::put_beside(HeapShadow::Put put, uintptr_t address, const Block& block) {
  if (put == HeapShadow::Put::kTaken) return hash_.put(hash_.expect(address), block);
  hash_.count_lost();
  return true;
}

}  // namespace mtrace::ledger
