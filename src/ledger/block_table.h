// The live blocks: address -> requested size and stack. Lock-free, no header inside the block.
//
// Open addressing in cache lines of four 16-byte slots. A block goes into the first free slot at
// or after its home line; `reach` of the home line remembers how many lines further any block of
// that home was ever put, so a search looks at no more than that and needs no tombstones. A block
// has one owner between malloc and free, so no two threads ever put or take the same address:
// slots are claimed with one compare-and-swap and given back with a store.
//
// A crowded level gets a successor of twice its size: new blocks go there, older ones are found
// where they are. Nothing is moved, so nobody ever waits for a mover.
//
// put, take, reserve, restore and release are thread-safe and async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"

namespace mtrace::ledger {

inline constexpr uint64_t kMostBytes = (uint64_t{1} << 47) - 1;  // of a block: the address space

struct Block {
  uint64_t size;   // requested bytes, up to kMostBytes
  uint32_t stack;  // index in the stack table
};

class BlockTable {
 public:
  // False: no memory.
  bool init();

  // False: no room, and lost_blocks() has grown.
  bool put(uintptr_t address, const Block& block) {
    return put_in(level(load_acquire(newest_)), address, block) || put_slowly(address, block);
  }

  // Takes the block out. False: not here (allocated before tracing began, or lost).
  bool take(uintptr_t address, Block* block) {
    Slot* slot = find(address);
    if (slot == nullptr) return false;
    *block = unpack(*slot);
    release(slot);
    return true;
  }

  struct Slot {
    uint64_t key;    // address, and bits 16..31 of the stack index above; 0: free
    uint64_t value;  // bits 0..15 of the stack index, and size + 1 above; 0: being changed
  };

  // Takes the block out but keeps its slot for restore(). nullptr: not here.
  Slot* reserve(uintptr_t address, Block* block) {
    Slot* slot = find(address);
    if (slot == nullptr) return nullptr;
    *block = unpack(*slot);
    store(slot->key, kReserved);
    return slot;
  }
  // Puts the reserved block back as it was: cannot fail.
  void restore(Slot* slot, uintptr_t address, const Block& block) {
    store(slot->value, packed_value(block));
    store_release(slot->key, packed_key(address, block));
  }
  void release(Slot* slot) {
    store(slot->value, uint64_t{0});
    store_release(slot->key, uint64_t{0});
  }

  uint64_t lost_blocks() const { return load(lost_blocks_); }

  // After a fork, in the child, alone: removes what threads that are gone left half done, calls
  // visit(block) for every whole one and returns the number removed.
  template <typename Visit>
  uint64_t repair(Visit&& visit) {
    uint64_t removed = 0;
    for (uint32_t i = 0; i <= load(newest_); ++i) {
      const Level at = level(i);
      for (uint64_t s = 0; s < at.lines * kLine; ++s) {
        Slot& slot = at.slots[s];
        if (slot.key == 0) continue;
        if (slot.key == kReserved || slot.value == 0) {
          slot = {0, 0};
          ++removed;
        } else {
          visit(unpack(slot));
        }
      }
    }
    return removed;
  }

 private:
  static constexpr unsigned kLine = 4;        // slots a cache line
  static constexpr unsigned kMostReach = 31;  // lines from home at most
  static constexpr unsigned kCrowded = 6;     // a block put this far away asks for a new level
  static constexpr unsigned kMaxLevels = 36;
  static constexpr unsigned kFirstLinesLog2 = 8;  // 1024 slots, 16 KiB
  static constexpr unsigned kAddressBits = 48;
  static constexpr uint64_t kAddressMask = (uint64_t{1} << kAddressBits) - 1;
  static constexpr uint64_t kReserved = 1;  // no block has this address

  // Level n has 2^(kFirstLinesLog2 + n) lines; the reaches stand behind the slots.
  struct Level {
    Slot* slots;
    uint8_t* reach;
    uint64_t lines;
    unsigned shift;  // 64 - log2(lines)
    uint32_t number;
  };
  Level level(uint32_t number) const {
    Slot* slots = load_acquire(slots_[number]);
    const unsigned log2 = kFirstLinesLog2 + number;
    const uint64_t lines = uint64_t{1} << log2;
    return {slots, reinterpret_cast<uint8_t*>(slots + lines * kLine), lines, 64 - log2, number};
  }

  static uint64_t packed_key(uintptr_t address, const Block& block) {
    return address | (uint64_t{block.stack} >> 16) << kAddressBits;
  }
  static uint64_t packed_value(const Block& block) {
    return (block.size + 1) << 16 | (block.stack & 0xffff);
  }
  static Block unpack(const Slot& slot) {
    const uint64_t key = load(slot.key);
    const uint64_t value = load(slot.value);
    return {(value >> 16) - 1,
            static_cast<uint32_t>((key >> kAddressBits) << 16 | (value & 0xffff))};
  }
  // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): high bits of a product.
  static uint64_t home(const Level& level, uintptr_t address) {
    return ((address >> 3) * 0x9e3779b97f4a7c15u) >> level.shift;
  }

  Slot* find(uintptr_t address) {
    for (uint32_t i = load_acquire(newest_) + 1; i-- > 0;) {
      const Level at = level(i);
      const uint64_t first = home(at, address);
      unsigned distance = 0;
      do {
        Slot* line = at.slots + ((first + distance) & (at.lines - 1)) * kLine;
        for (unsigned s = 0; s < kLine; ++s) {
          if ((load(line[s].key) & kAddressMask) == address) return line + s;
        }
      } while (distance++ < load(at.reach[first]));
    }
    return nullptr;
  }

  bool put_in(const Level& level, uintptr_t address, const Block& block) {
    const uint64_t first = home(level, address);
    for (unsigned distance = 0; distance <= kMostReach; ++distance) {
      Slot* line = level.slots + ((first + distance) & (level.lines - 1)) * kLine;
      for (unsigned s = 0; s < kLine; ++s) {
        uint64_t expected = load(line[s].key);
        if (expected == 0 && compare_exchange(line[s].key, expected, packed_key(address, block))) {
          store(line[s].value, packed_value(block));
          if (distance != 0) extend_reach(level, first, distance);
          return true;
        }
      }
    }
    return false;
  }

  bool put_slowly(uintptr_t address, const Block& block);
  void extend_reach(const Level& level, uint64_t line, unsigned distance);
  bool add_level(uint32_t number);

  uint32_t newest_ = 0;
  uint64_t lost_blocks_ = 0;
  Slot* slots_[kMaxLevels] = {};
};

}  // namespace mtrace::ledger
