#include "ledger/unplaced.h"

#include "base/table_memory.h"

namespace mtrace::ledger {
namespace {

// The object that `word` points to, mapped if `word` is nullptr. nullptr: no memory.
template <typename T>
T* make(T*& word) {
  return sys::private_memory(word, sizeof(T), sys::map_memory, [] {});
}

template <typename T>
void drop(T*& word) {
  if (word != nullptr) sys::unmap_memory(word, sizeof(T));
  word = nullptr;
}

// Sets the bit, or clears it. False: the bit already was as wanted.
bool change(uint64_t& word, uint64_t bit, bool set) {
  uint64_t seen = load(word);
  do {
    if (((seen & bit) != 0) == set) return false;
  } while (!compare_exchange(word, seen, seen ^ bit));
  return true;
}

}  // namespace

uint64_t* Unplaced::find(uintptr_t address) const {
  if (address >> (kLeaf + kBranches + kRoots) != 0) return nullptr;
  const Root* root = load_acquire(root_);
  if (root == nullptr) return nullptr;
  const Branch* branch = load_acquire(root->branches[address >> (kLeaf + kBranches)]);
  if (branch == nullptr) return nullptr;
  constexpr size_t kMost = sizeof branch->leaves / sizeof branch->leaves[0];
  Leaf* leaf = load_acquire(branch->leaves[address >> kLeaf & (kMost - 1)]);
  if (leaf == nullptr) return nullptr;
  constexpr size_t kWords = sizeof leaf->words / sizeof leaf->words[0];
  return &leaf->words[address >> (kGranule + 6) & (kWords - 1)];
}

uint64_t* Unplaced::find_or_make(uintptr_t address) {
  if (address >> (kLeaf + kBranches + kRoots) != 0) return nullptr;
  Root* root = make(root_);
  if (root == nullptr) return nullptr;
  Branch* branch = make(root->branches[address >> (kLeaf + kBranches)]);
  if (branch == nullptr) return nullptr;
  constexpr size_t kMost = sizeof branch->leaves / sizeof branch->leaves[0];
  if (make(branch->leaves[address >> kLeaf & (kMost - 1)]) == nullptr) return nullptr;
  return find(address);
}

bool Unplaced::is_marked(uintptr_t address) const {
  const uint64_t* word = find(address);
  return word != nullptr && (load(*word) & bit_of(address)) != 0;
}

bool Unplaced::put(uintptr_t address, Totals weight, bool unmarked) {
  uint64_t* word = find_or_make(address);
  if (word == nullptr && !unmarked) return false;
  fetch_add(live_.bytes, weight.bytes);
  fetch_add(live_.blocks, weight.blocks);
  // Marked already: a block of that address was freed unseen, and stays counted.
  if (word != nullptr) {
    change(*word, bit_of(address), true);
  } else {
    fetch_add<uint64_t>(unmarked_, 1);
  }
  return true;
}

// Takes out one of the blocks without a bit, whichever it is.
bool Unplaced::take_unmarked() {
  uint64_t seen = load(unmarked_);
  do {
    if (seen == 0) return false;
  } while (!compare_exchange(unmarked_, seen, seen - 1));
  return true;
}

bool Unplaced::take(uintptr_t address, Totals weight) {
  uint64_t* word = find(address);
  const bool marked = word != nullptr && change(*word, bit_of(address), false);
  if (!marked && !take_unmarked()) return false;
  fetch_add(live_.blocks, -weight.blocks);
  fetch_add(live_.bytes, -weight.bytes);
  return true;
}

void Unplaced::clear() {
  if (root_ != nullptr) {
    for (Branch*& branch : root_->branches) {
      if (branch == nullptr) continue;
      for (Leaf*& leaf : branch->leaves) drop(leaf);
      drop(branch);
    }
  }
  drop(root_);
  live_ = {};
  unmarked_ = 0;
}

}  // namespace mtrace::ledger
