// The live blocks: address -> requested size, stack and birth. Lock-free, no header inside the
// block. Small ones stand in a shadow of the heap, all others, and those that find no place there,
// in a hash table.
//
// A block has one owner between malloc and free, so no two threads ever put or take the same
// address. Which of the two tables a block is in is not remembered: the shadow is looked at first.
// A block that was freed past the hooks is found out when its word is seen taken, or by a report.
//
// put, take, reserve, restore and release are thread-safe and async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "ledger/block.h"
#include "ledger/block_hash.h"
#include "ledger/heap_shadow.h"

namespace mtrace::ledger {

class BlockTable {
 public:
  // False: no memory.
  bool init() { return hash_.init(); }
  // Without it all blocks stand in the hash table. While no other thread puts blocks.
  void use_shadow(HeapShadow::Granules granules) { shadow_.use(granules); }
  // The hash table stops growing at so many places, or with its first level; 0: no limit.
  void limit_to(uint64_t most) { hash_.limit_to(most); }

  // A block of the size will be put at the address: what put() wants to be given. Has the processor
  // fetch the place meanwhile.
  [[gnu::always_inline]] uint64_t* expect(uintptr_t address, uint64_t size) {
    if (size < HeapShadow::kSmall) [[likely]] {
      uint64_t* const word = expect_small(address);
      if (word != nullptr) [[likely]]
        return word;
    }
    hash_.expect(address);
    return nullptr;
  }
  // The same of one that is smaller than HeapShadow::kSmall, if it has a word; otherwise nullptr.
  [[gnu::always_inline]] uint64_t* expect_small(uintptr_t address) {
    uint64_t* const word = shadow_.find_or_make(address);
    __builtin_prefetch(word, 1);
    return word;
  }
  // The word that a small block at the address may have, or nullptr.
  [[gnu::always_inline]] uint64_t* expect_small_to_take(uintptr_t address) const {
    uint64_t* const word = shadow_.find(address);
    __builtin_prefetch(word, 1);
    return word;
  }

  // Addresses are multiples of 8 in the lower half of the address space. False: no room, and
  // lost_blocks() has grown.
  [[gnu::always_inline]] bool put(uint64_t* word, uintptr_t address, Block block) {
    if (word == nullptr) return put_in_hash(address, block);
    return put_small(*word, address, HeapShadow::pack(address, block));
  }
  // The same of a block that has a word, in the form in which it stands there.
  [[gnu::always_inline]] bool put_small(uint64_t& word, uintptr_t address, uint64_t packed) {
    const HeapShadow::Put put = shadow_.put(word, address, packed);
    if (put == HeapShadow::Put::kDone) [[likely]]
      return true;
    return put_beside(put, address, HeapShadow::unpack(packed));
  }
  bool put(uintptr_t address, const Block& block) {
    return put(expect(address, block.size), address, block);
  }

  // The same of a block whose `is_sample` is set: of few blocks of the whole heap each would have a
  // page of the shadow to itself.
  bool put_sample(uintptr_t address, const Block& block);

  // The block will be taken soon: what take() wants to be given.
  [[gnu::always_inline]] uint64_t* expect_to_take(uintptr_t address) const {
    uint64_t* const word = shadow_.find(address);
    if (word != nullptr) [[likely]] {
      __builtin_prefetch(word, 1);
    } else {
      hash_.expect_to_take(address);
    }
    return word;
  }
  // Takes the block out. Its stack is 0: it is not here (allocated before tracing began, or lost).
  [[gnu::always_inline]] Block take(uint64_t* word, uintptr_t address) {
    if (word != nullptr) [[likely]] {
      const Block block = HeapShadow::take(*word, address);
      if (block.stack != 0) [[likely]]
        return block;
    }
    return take_from_hash(address);
  }
  bool take(uintptr_t address, Block* block) {
    *block = take(shadow_.find(address), address);
    return block->stack != 0;
  }

  // A block that was taken out, and may come back.
  struct Reserved {
    bool known;             // false: it was not here
    BlockHash::Slot* slot;  // that is kept for it; nullptr: it was in the shadow
  };
  Reserved reserve(uintptr_t address, Block* block) {
    uint64_t* const word = shadow_.find(address);
    // The word is not kept: once realloc has succeeded it may be another thread's.
    if (word != nullptr) *block = HeapShadow::take(*word, address);
    if (word != nullptr && block->stack != 0) return {true, nullptr};
    BlockHash::Slot* const slot = hash_.reserve(address, block);
    return {slot != nullptr, slot};
  }
  // Puts the reserved block back as it was. It has a place: a slot was kept, and nobody else had
  // the address meanwhile. (Where granules are shared a neighbour may have taken the word: then
  // there has to be memory for the hash table, or the block counts as lost.)
  void restore(const Reserved& reserved, uintptr_t address, const Block& block) {
    if (reserved.slot != nullptr) {
      hash_.restore(reserved.slot, address, block);
    } else {
      put(address, block);
    }
  }
  void release(const Reserved& reserved) {
    if (reserved.slot != nullptr) hash_.release(reserved.slot);
  }

  // How many cache lines are looked at to find the block, which is here.
  unsigned lines_to(uintptr_t address) {
    const uint64_t* const word = shadow_.find(address);
    if (word == nullptr) return hash_.lines_to(address);
    return HeapShadow::holds(*word, address) ? 1 : 1 + hash_.lines_to(address);
  }

  uint64_t lost_blocks() const { return hash_.lost_blocks(); }

  // Calls visit(address, block) for every block that lives from the beginning of the call to its
  // end, and perhaps for some that do not.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    shadow_.for_each(visit);
    hash_.for_each(visit);
  }

  // After a fork, in the child, alone: removes what threads that are gone left half done, calls
  // visit(address, block) for every whole one and returns the number removed.
  template <typename Visit>
  uint64_t repair(Visit&& visit) {
    shadow_.for_each(visit);
    return hash_.repair(visit);
  }

  // Blocks of the hash table whose address came back to a small block were freed unseen: they go,
  // as put() would have found them out. A report does that, so that no allocation searches both
  // tables. By one thread at a time.
  void drop_replaced() {
    hash_.drop_replaced([this](uintptr_t address) {
      const uint64_t* const word = shadow_.find(address);
      const uint64_t held = word != nullptr ? load(*word) : 0;
      return HeapShadow::holds(held, address) ? held : 0;
    });
  }

  uint64_t resident_shadow() const { return shadow_.resident(); }

  // See HeapShadow.
  void give_back_zeros() { shadow_.give_back_zeros(); }

  // Alone: takes every block out.
  void forget_all() {
    shadow_.forget_all();
    hash_.forget_all();
  }

 private:
  void drop_from_shadow(uintptr_t address);
  // There is no word, or it was not free.
  bool put_in_hash(uintptr_t address, Block block);
  Block take_from_hash(uintptr_t address);
  bool put_beside(HeapShadow::Put put, uintptr_t address, Block block);

  friend struct Layout;

  BlockHash hash_;
  HeapShadow shadow_;
};

}  // namespace mtrace::ledger
