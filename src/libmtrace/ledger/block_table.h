// The live blocks: address -> requested size, stack and birth. Lock-free, no header inside the
// block. Small blocks are in a shadow of the heap. Large blocks, and small ones that find no place
// there or lie far from each other, are in a hash table.
//
// A block has one owner between malloc and free, so no two threads ever put or take the same
// address. No field says which of the two tables has a block: a search begins with the shadow. A
// block freed past the hooks is detected when a later block needs its place, or by a report.
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
  bool init() {
    shadow_.init();
    return hash_.init();
  }
  // What the table asks of the process, inside an operation.
  struct Process {
    // Number of live blocks.
    uint64_t (*live_blocks)();
    // Whether each thread has been outside an operation since the call, but for the caller's one if
    // `inside`. False: that could not be seen.
    bool (*all_were_outside)(bool inside);
    // There may be memory to give back once much of what is live now is freed; in so many steps.
    void (*has_grown)(uint64_t steps);
  };
  // Before this call all blocks go to the hash table. Call while no other thread puts blocks.
  void use_shadow(HeapShadow::Granules granules, const Process& process) {
    process_ = process;
    shadow_.use(granules);
  }

  // The word of a block smaller than HeapShadow::kSmall, prefetched; nullptr: there is none.
  [[gnu::always_inline]] uint64_t* find_small(uintptr_t address) const {
    uint64_t* const word = shadow_.find(address);
    __builtin_prefetch(word, 1);
    return word;
  }
  // The word to pass to put() for a block of `size` bytes at the address, made if there is room;
  // nullptr: it goes to the hash table. Prefetches its place.
  [[gnu::always_inline]] uint64_t* expect(uintptr_t address, uint64_t size) {
    if (size < HeapShadow::kSmall) [[likely]] {
      uint64_t* const word = find_small(address);
      if (word != nullptr) [[likely]]
        return word;
      uint64_t* const made = make_small(address);
      if (made != nullptr) return made;
    }
    hash_.expect(address);
    __builtin_prefetch(shadow_.find(address));  // put() looks there for an older block
    return nullptr;
  }

  // Puts a block in. `word`: from expect(). Addresses are multiples of 8 in the lower half of the
  // address space. False: no room, and lost_blocks() has grown.
  [[gnu::always_inline]] bool put(uint64_t* word, uintptr_t address, Block block) {
    if (word == nullptr) return put_in_hash(address, block);
    const uint64_t packed = HeapShadow::pack(address, block);
    const HeapShadow::Put put = shadow_.put(*word, address, packed);
    if (put == HeapShadow::Put::kDone) [[likely]]
      return true;
    return put_beside(put, address, HeapShadow::unpack(packed));
  }
  bool put(uintptr_t address, const Block& block) {
    return put(expect(address, block.size), address, block);
  }

  // The word to pass to take(), or nullptr. Prefetches the place of the block.
  [[gnu::always_inline]] uint64_t* expect_to_take(uintptr_t address) const {
    uint64_t* const word = shadow_.find(address);
    if (word != nullptr) [[likely]] {
      __builtin_prefetch(word, 1);
    } else {
      hash_.expect_to_take(address);
    }
    return word;
  }
  // Takes the block out; with stack 0 if it is not here (allocated before tracing began, or lost).
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
    bool known;             // false: the block was not here
    BlockHash::Slot* slot;  // kept for the block; nullptr: it was in the shadow
  };
  Reserved reserve(uintptr_t address, Block* block) {
    uint64_t* const word = shadow_.find_also_closed(address);
    // The word is not kept: once realloc has succeeded, another thread may own it.
    if (word != nullptr) *block = HeapShadow::take(*word, address);
    if (word != nullptr && block->stack != 0) return {true, nullptr};
    BlockHash::Slot* const slot = hash_.reserve(address, block);
    return {slot != nullptr, slot};
  }
  // Puts the reserved block back. Its slot was kept, or its word is free, since no other thread had
  // the address meanwhile. Where granules are shared, a neighbour may have taken the word: the
  // block then goes to the hash table, or counts as lost if that has no memory.
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

  // Number of cache lines that a search reads to find the block, which must be here.
  unsigned lines_to(uintptr_t address) {
    const uint64_t* const word = shadow_.find_also_closed(address);
    if (word == nullptr) return hash_.lines_to(address);
    return HeapShadow::holds(*word, address) ? 1 : 1 + hash_.lines_to(address);
  }

  uint64_t lost_blocks() const { return hash_.lost_blocks(); }
  // Counts a block that was not put in.
  void count_lost() { hash_.count_lost(); }

  // Calls visit(address, block) for every block that lives from the beginning of the call to its
  // end, and perhaps for some that do not.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    shadow_.for_each(visit);
    hash_.for_each(visit);
  }

  // In the single-threaded child of a fork: ends what another thread had begun to give back.
  void after_fork();
  // In the single-threaded child of a fork: removes what vanished threads left half done, calls
  // visit(address, block) for every complete block and returns the number removed.
  template <typename Visit>
  uint64_t repair(Visit&& visit) {
    shadow_.for_each(visit);
    return hash_.repair(visit);
  }

  // Removes blocks of the hash table whose address the shadow has since: they were freed past the
  // hooks. Reports call this, so that no allocation searches both tables. One thread at a time.
  void drop_replaced() {
    hash_.drop_replaced([this](uintptr_t address) {
      const uint64_t* const word = shadow_.find_also_closed(address);
      const uint64_t held = word != nullptr ? load(*word) : 0;
      return HeapShadow::holds(held, address) ? held : 0;
    });
  }

  uint64_t shadow_bytes() const { return shadow_.bytes(); }

  // Gives memory back to the kernel in which no block stands. `inside`: the caller is inside an
  // operation, and has done with this table; it looks at a part of it only, for the program waits.
  // Gives back nothing while another thread does so, or stays inside an operation.
  void give_back_empty(bool inside);
  // Before the tables are filled with zeros: unmaps what they alone lead to.
  void drop_index() { shadow_.drop_index(); }

  // Takes every block out. No other thread may be inside the library.
  void forget_all() {
    shadow_.forget_all();
    hash_.forget_all();
  }

 private:
  // Pages of the shadow are made while all tables of blocks take no more than this for each live
  // block, and some for few.
  static constexpr uint64_t kMostBytesABlock = 28;
  static constexpr uint64_t kMostBytesOfFew = 768 * 1024;

  void drop_from_shadow(uintptr_t address);
  static constexpr uint32_t kStep = 1024;  // pages that give_back_empty() looks at in one step
  uint64_t steps() const { return 2 + (shadow_.made() + hash_.pages()) / kStep; }
  void give_back_some(bool inside);
  void watch();
  void look_for_room();
  bool has_room(uintptr_t address);
  uint64_t* make_small(uintptr_t address);
  // Slow paths: the block has no word, or its word was not free.
  bool put_in_hash(uintptr_t address, Block block);
  Block take_from_hash(uintptr_t address);
  bool put_beside(HeapShadow::Put put, uintptr_t address, Block block);

  friend struct Layout;

  BlockHash hash_;
  HeapShadow shadow_;
  Process process_ = {};
  uint64_t room_ = 0;  // bytes that the shadow may have before has_room() looks again; 0: it does
  // When watch() was last called: levels of the hash table, used pages of the shadow.
  uint32_t levels_ = 0;
  uint32_t looked_at_ = 0;
  uint32_t hand_ = 0;     // number of the page of the shadow at which give_back_some() goes on
  uint32_t closing_ = 0;  // 1: a thread gives memory back
};

}  // namespace mtrace::ledger
