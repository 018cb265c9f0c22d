// A hash table of blocks: address -> requested size, stack and birth. For blocks that have no place
// in the shadow of the heap (ledger/block_table.h).
//
// Open addressing in cache lines of four 16-byte slots. A block goes into the first free slot at or
// after its home line; `reach` of a home line is the most lines from home that any of its blocks
// was ever put, so a search stops there and needs no tombstones. A block has one owner between
// malloc and free, so no two threads ever put or take the same address: slots are claimed with one
// compare-and-swap and given back with a store.
//
// A crowded level gets a successor: new blocks go there, older blocks stay where they are. Nothing
// is moved, so no thread ever waits for a mover. Pages of levels that take no more blocks are given
// back once they are empty.
//
// put, take, reserve, restore and release are thread-safe and async-signal-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/table_memory.h"
#include "format/ledger.h"
#include "ledger/block.h"

namespace mtrace::ledger {

class BlockHash {
  struct Level;

 public:
  // False: no memory.
  bool init();

  // Home of a block in the newest level, by its address. expect() also prefetches it.
  struct Place {
    uintptr_t address;
    const Level* level;
    uint64_t home;  // line
  };
  Place expect(uintptr_t address) const {
    const Level& newest = levels_[load_acquire(newest_)];
    const Place place = {address, &newest, home(newest, address)};
    __builtin_prefetch(newest.slots() + place.home * kLine, 1);
    return place;
  }

  // Prefetches for a take(). Where the table no longer fits in a cache, fetches the home lines of
  // the two newest levels, which hold most blocks, at the same time.
  void expect_to_take(uintptr_t address) const {
    const uint32_t newest = load_acquire(newest_);
    if (newest < kUncached) [[likely]]
      return;
    for (const Level* at = &levels_[newest]; at >= &levels_[newest - 1]; --at) {
      const uint64_t first = home(*at, address);
      __builtin_prefetch(at->slots() + first * kLine, 1);
      __builtin_prefetch(&at->reach(first));
    }
  }

  // Puts a block in. Addresses are multiples of 8 below 2^48. False: no room, and lost_blocks() has
  // grown.
  [[gnu::always_inline]] bool put(const Place& place, const Block& block) {
    if (block.size >= kLarge || (place.address & ~(kAddressMask << 3)) != 0) [[unlikely]] {
      return put_unusual(place, block);
    }
    const Slot packed = pack(place.address, block);
    return put_at(*place.level, place.home, packed) || put_slowly(place.address, packed);
  }
  bool put(uintptr_t address, const Block& block) { return put(expect(address), block); }

  // Takes the block out. False: not here (allocated before tracing began, or lost).
  [[gnu::always_inline]] bool take(uintptr_t address, Block* block) {
    Slot* slot = find(address);
    if (slot == nullptr) return false;
    const Slot seen = {load(slot->key), load(slot->value)};
    *block = unpack_small(seen);
    if (block->size >= kLarge) [[unlikely]] {
      *block = unpack(seen);
      forget_large(seen);
    }
    clear(slot);
    return true;
  }

  using Slot = format::LedgerSlot;

  // Takes the block out but keeps its slot for restore() or release(). nullptr: not here.
  Slot* reserve(uintptr_t address, Block* block) {
    Slot* slot = find(address);
    if (slot == nullptr) return nullptr;
    *block = unpack(*slot);
    store(slot->key, kReserved);
    return slot;
  }
  // Puts the reserved block back as it was: cannot fail.
  void restore(Slot* slot, uintptr_t address, const Block& block) {
    store_release(slot->key, packed_key(address, block));
  }
  void release(Slot* slot) {
    if (size_field(load(slot->value)) >= kLarge) [[unlikely]]
      forget_large(*slot);
    clear(slot);
  }

  // Number of lines that a search reads to find the block, which must be here.
  unsigned lines_to(uintptr_t address) {
    unsigned lines = 0;
    find(address, &lines);
    return lines;
  }

  uint32_t levels() const { return load(highest_); }  // but the first
  // Bytes of all levels, with the part of the next that is due: it takes all its memory at once.
  uint64_t bytes() const;

  // Pages of all places.
  uint64_t pages() const;
  // Gives memory of levels that take no more blocks back to the kernel, in two steps; one thread at
  // a time. The first chooses a smaller level to take them, if few of all places are used. Before
  // the second, each other thread must have been outside an operation.
  void retire_levels();
  // Looks at `pages` pages, and goes on there the next time. `outside`: each other thread has been
  // outside since; otherwise gives nothing back. `alone`: no other thread is inside the library; so
  // blocks are moved out of pages that have few.
  void give_back(uint64_t pages, bool outside, bool alone);

  uint64_t lost_blocks() const { return load(lost_blocks_); }
  void count_lost() { fetch_add<uint64_t>(lost_blocks_, 1); }

  // Calls visit(address, block) for every block that lives from the beginning of the call to its
  // end, and perhaps for some that do not.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    each_slot([&](const Slot& slot) {
      const Slot seen = {load_acquire(slot.key), load_acquire(slot.value)};
      // Changed meanwhile: key and value may be of two blocks, neither of which lived throughout
      // the call.
      if (seen.key <= kReserved || seen.value == 0 || load(slot.key) != seen.key) return;
      visit(address_of(seen), unpack(seen));
    });
  }

  // Removes each block whose address a block in another table has taken since, and passes it to
  // missed_free(). `other(address)`: a word that identifies that other block while it lives; 0:
  // there is none. One thread at a time. A block that is freed and put again at the same address
  // and tick during the check could be mistaken for the older one.
  template <typename Other>
  void drop_replaced(Other&& other) {
    each_slot([&](Slot& slot) {
      const Slot seen = {load_acquire(slot.key), load_acquire(slot.value)};
      if (seen.key <= kReserved || seen.value == 0) return;
      const uint64_t before = other(address_of(seen));
      if (before != 0) [[unlikely]]
        drop_if_same(slot, seen, before, other);
    });
  }

  // In the single-threaded child of a fork: removes what vanished threads left half done, calls
  // visit(address, block) for every complete block and returns the number removed.
  template <typename Visit>
  uint64_t repair(Visit&& visit) {
    uint64_t removed = 0;
    each_slot([&](Slot& slot) {
      if (slot.key == 0) return;
      if (slot.key == kReserved || slot.value == 0) {
        release(&slot);
        ++removed;
      } else {
        visit(address_of(slot), unpack(slot));
      }
    });
    return removed;
  }

  // Takes every block out. No other thread may be inside the library.
  void forget_all();

 private:
  static constexpr unsigned kLine = format::kSlotsALine;
  static constexpr unsigned kMostReach = 31;  // lines from home at most
  static constexpr unsigned kCrowded = 6;  // a block put this far away counts towards a new level
  static constexpr unsigned kMostCrowded = 64;
  static constexpr unsigned kFull = 85;     // per cent of its places
  static constexpr unsigned kUncached = 8;  // a level of 800 KiB
  static constexpr unsigned kMaxLevels = format::kLedgerLevels;
#ifndef MTRACE_ATOMICS
  static constexpr uint64_t kFirstLines = 256;  // 1024 slots, 16 KiB
#else
  static constexpr uint64_t kFirstLines = 64;
#endif
  static constexpr unsigned kAddressBits = format::kSlotAddressBits;
  static constexpr uint64_t kAddressMask = (uint64_t{1} << kAddressBits) - 1;
  static constexpr unsigned kStackBits = format::kSlotStackBits;
  static constexpr unsigned kSizeBits = format::kSlotSizeBits;
  static constexpr unsigned kBirthLow = 64 - kAddressBits;
  static_assert(kStackBits + kSizeBits + (kPackedTickBits - kBirthLow) == 64);
  static constexpr uint64_t kLarge = format::kLargeSize;  // from here on: see LedgerSlot
  static constexpr uint32_t kMostLarge = 1u << 16;
  static constexpr uint64_t kReserved = 1;  // no block has this address

  // A level has three quarters of the lines of all before it; its `reach` bytes follow its slots.
  // add_level() writes the two pointers, also in a thread that lost the race to make the level;
  // init() writes the rest.
  struct Level {
    Slot* slots_made;
    uint8_t* reach_made;
    uint64_t lines;
    uint64_t number;

    Slot* slots() const { return load(slots_made); }
    // `at`: below twice the number of lines.
    Slot* line(uint64_t at) const { return slots() + (at < lines ? at : at - lines) * kLine; }
    uint8_t& reach(uint64_t line) const { return load(reach_made)[line]; }
    uint64_t bytes() const { return lines * (kLine * sizeof(Slot) + 1); }
  };

  template <typename Visit>
  void each_slot(Visit&& visit) const {
    for (uint32_t i = 0; i <= load_acquire(highest_); ++i) {
      const Level& at = levels_[i];
      for (uint64_t s = 0; s < at.lines * kLine; ++s) visit(at.slots()[s]);
    }
  }
  static uint64_t packed_key(uintptr_t address, const Block& block) {
    return address >> 3 | uint64_t{block.birth} << kAddressBits;
  }
  static Slot pack(uintptr_t address, const Block& block) {
    return {packed_key(address, block),
            block.stack | block.size << kStackBits |
                uint64_t{uint32_t{block.birth} >> kBirthLow} << (kStackBits + kSizeBits)};
  }
  static uintptr_t address_of(const Slot& slot) { return (load(slot.key) & kAddressMask) << 3; }
  static uint64_t size_field(uint64_t value) {
    return value >> kStackBits & ((uint64_t{1} << kSizeBits) - 1);
  }
  // Does not decode the size field.
  static Block unpack_small(const Slot& slot) {
    return {size_field(slot.value), static_cast<uint32_t>(slot.value & ((1u << kStackBits) - 1)),
            static_cast<uint32_t>(slot.key >> kAddressBits | slot.value >> (kStackBits + kSizeBits)
                                                                               << kBirthLow)};
  }
  Block unpack(const Slot& slot) const {
    Block block = unpack_small({load(slot.key), load(slot.value)});
    if (block.size >= kLarge) [[unlikely]]
      block.size = large_size(block.size - kLarge);
    return block;
  }
  static void clear(Slot* slot) {
    store(slot->value, uint64_t{0});
    store_release(slot->key, uint64_t{0});
  }
  // Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4), scaled to the lines.
  // Addresses of equal distance are spread evenly: for each distance from 2^7 to 2^47, the
  // continued fraction of the step that the factor makes of it has no quotient above 27 (the golden
  // ratio's multiples have some of 970). Found by trying 30 million.
  static uint64_t home(const Level& level, uintptr_t address) {
    const uint64_t product = (address >> 7) * 0x3891453a861fcf35u;
    return static_cast<uint64_t>(static_cast<unsigned __int128>(product) * level.lines >> 64);
  }

  // The slots of the line that have the key, as bits. No branch for each slot: the result cannot be
  // predicted, and the line may still be on its way from memory.
  static unsigned places(const Slot* line, uint64_t key, uint64_t mask) {
    unsigned found = 0;
#pragma GCC unroll 4
    for (unsigned s = 0; s < kLine; ++s) {
      found |= static_cast<unsigned>((load(line[s].key) & mask) == key) << s;
    }
    return found;
  }

  [[gnu::always_inline]] Slot* find(uintptr_t address, unsigned* lines = nullptr) {
    const uint64_t wanted = address >> 3;
    if ((address & ~(kAddressMask << 3)) != 0) return nullptr;
    for (uint32_t i = load_acquire(highest_) + 1; i-- > 0;) {
      const Level& at = levels_[i];
      const uint64_t first = home(at, address);
      unsigned distance = 0;
      do {
        Slot* line = at.line(first + distance);
        if (lines != nullptr) ++*lines;
        const unsigned here = places(line, wanted, kAddressMask);
        if (here != 0) return line + std::countr_zero(here);
      } while (distance++ < load(at.reach(first)));
    }
    return nullptr;
  }

  // False: another thread has the slot. claim_exchange() omits the bus lock where it can, because a
  // locked instruction waits for all that the processor has under way.
  static bool claim(uint64_t& key, uint64_t value) {
    uint64_t expected = 0;
    return claim_exchange(key, expected, value);
  }

  [[gnu::always_inline]] bool put_at(const Level& level, uint64_t first, const Slot& packed) {
    for (unsigned distance = 0; distance <= kMostReach; ++distance) {
      Slot* line = level.line(first + distance);
      // A search would find an older block of this address before the new one.
      if (places(line, packed.key & kAddressMask, kAddressMask) != 0) [[unlikely]] {
        drop_older(level, first + distance, packed, 0);
      }
      for (unsigned free = places(line, 0, ~uint64_t{0}); free != 0; free &= free - 1) {
        Slot& slot = line[std::countr_zero(free)];
        if (!claim(slot.key, packed.key)) continue;
        store_release(slot.value, packed.value);
        if (distance != 0) extend_reach(level, first, slot, distance);
        return true;
      }
    }
    return false;
  }

  bool put_in(const Level& level, uintptr_t address, const Slot& packed);
  bool put_slowly(uintptr_t address, const Slot& packed);
  bool put_unusual(const Place& place, const Block& block);
  uint64_t large_size(uint64_t index) const;
  void forget_large(const Slot& slot);
  void extend_reach(const Level& level, uint64_t line, const Slot& put, unsigned distance);
  template <typename Other>
  void drop_if_same(Slot& slot, const Slot& seen, uint64_t before, Other&& other) {
    uint64_t key = seen.key;
    // A thread that puts the address meanwhile drops the older block, too: one of the two does.
    if (!compare_exchange(slot.key, key, kReserved)) return;
    const uintptr_t address = (seen.key & kAddressMask) << 3;
    if (other(address) != before) return store_release(slot.key, seen.key);
    const Block older = unpack(seen);
    release(&slot);
    missed_free(address, older);
  }
  static unsigned fullness(const Level& level);
  bool drop_older(const Level& level, uint64_t line, const Slot& put, unsigned distance);
  bool make_level(uint32_t number);
  bool add_level(uint32_t full);
  static bool is_free(const Slot& slot) { return load(slot.key) == 0; }
  static constexpr size_t kPage = 4096 / sizeof(Slot);
  bool move_away(Slot* slots);
  uint64_t give_back_some(uint64_t pages, bool moves);
  void end_level();

  friend struct Layout;

  uint32_t newest_ = 0;    // number of the level that new blocks go to
  uint32_t highest_ = 0;   // of the last that may have blocks
  uint32_t retiring_ = 0;  // 1: between retire_levels() and give_back()
  uint64_t lost_blocks_ = 0;
  Level levels_[kMaxLevels] = {};
  uint32_t crowded_[kMaxLevels] = {};
  uint64_t empty_[kMaxLevels] = {};  // bytes given back
  // Where give_back() goes on: the level, its place, and bytes of the level that were empty.
  uint32_t hand_level_ = 0;
  uint64_t hand_ = 0;
  uint64_t hand_empty_ = 0;
  GrowingArray<uint64_t> large_;  // sizes of blocks from 1 GiB on; 0: free
};

}  // namespace mtrace::ledger
