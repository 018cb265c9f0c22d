#include "ledger/heap_shadow.h"

#include "base/probe.h"
#include "base/table_memory.h"

namespace mtrace::ledger {

uint64_t* HeapShadow::make(uintptr_t address) {
  if ((address & kUnusual) != 0 || load(granules_) == Granules::kUnused) return nullptr;
  // A filter of system calls may end the program at an mmap; the hash table usually has room.
  if (sys::may_be_filtered()) return nullptr;
  Middle*& entry = directory_.use(address >> kMiddleShift);
  Middle* const middle = sys::sparse_table_memory(entry, sizeof(Middle), true);
  if (middle == nullptr) return nullptr;
  uint64_t*& leaf = middle->use(address >> kLeafShift & (kLeaves - 1));
  if (sys::sparse_table_memory(leaf, kLeafWords * sizeof(uint64_t)) == nullptr) return nullptr;
  return find(address);
}

HeapShadow::Put HeapShadow::replace(uint64_t& word, uint64_t seen, uintptr_t address,
                                    uint64_t packed) {
  if ((seen ^ place_in_granule(address)) >> kPlaceShift != 0) return Put::kTaken;
  // An older block of this address, which the caller owns: no other thread changes the word.
  missed_free(address, unpack(seen));
  store_release(word, packed);
  return Put::kReplaced;
}

uint64_t HeapShadow::resident() const {
  uint64_t sum = 0;
  const auto add = [&](const void* part, size_t bytes) {
    sum += sys::tables_in_file()  // which reserves room for all of it
               ? bytes
               : sys::resident_bytes(reinterpret_cast<uintptr_t>(part), bytes);
  };
  directory_.for_each([&](size_t, const Middle& middle) { add(&middle, sizeof middle); });
  each_leaf([&](uintptr_t, const uint64_t* leaf) { add(leaf, kLeafWords * sizeof(uint64_t)); });
  return sum;
}

void HeapShadow::forget_all() {
  each_leaf([](uintptr_t, uint64_t* leaf) {
    if (!sys::tables_in_file() && sys::give_back(leaf, kLeafWords * sizeof leaf[0])) return;
    for (size_t i = 0; i < kLeafWords; ++i) {
      if (leaf[i] != 0) leaf[i] = 0;  // most pages were never touched
    }
  });
}

// A put that was interrupted between reading a word and storing it writes to a fresh page.
void HeapShadow::give_back_zeros() {
  if (sys::tables_in_file() || sys::may_be_filtered()) return;
  constexpr size_t kRun = 16 * 4096 / sizeof(uint64_t);
  each_leaf([](uintptr_t, uint64_t* leaf) {
    for (size_t run = 0; run < kLeafWords; run += kRun) {
      uint64_t any = 0;
      for (size_t i = run; i < run + kRun; ++i) any |= leaf[i];
      if (any == 0) sys::give_back(leaf + run, kRun * sizeof leaf[0]);
    }
  });
}

}  // namespace mtrace::ledger
