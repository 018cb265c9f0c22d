// A shadow of the heap for small blocks: for each granule of 32 bytes of heap, a word that
// describes the block that begins there. No hash, no search: shifts of the address find the word,
// and the words of neighbouring blocks are neighbours.
//
//   address  | 47 .. 34 | 33 .. 20 | 19 .. 5 |  4 3  | 2 .. 0
//            | directory|  middle  |  leaf   | word  |  zero
//
// A leaf takes 256 KiB for 1 MiB of heap and is mapped for the first small block there. Only its
// pages in which a word was written are resident, each for 16 KiB of heap.
//
// glibc's chunks have 32 bytes at least, so no two live blocks begin in one granule, and a word has
// one owner between malloc and free. With an allocator of smaller size classes two may: a word is
// then claimed, and a block that finds its word taken goes to the hash table.
//
// Thread-safe and async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/bit_set.h"
#include "format/ledger.h"
#include "ledger/block.h"
#include "ledger/ticks.h"

namespace mtrace::ledger {

struct ShadowBits {  // bits of an address below a granule's number, a leaf's and so on
  unsigned granule, leaf, middle, end;
};
#ifndef MTRACE_ATOMICS
inline constexpr ShadowBits kShadowBits = {format::kShadowGranuleBits, format::kShadowLeafBits,
                                           format::kShadowMiddleBits, format::kShadowAddressBits};
#else
// Small, for the program that runs the tables step by step.
inline constexpr ShadowBits kShadowBits = {5, 7, 9, 11};
#endif

class HeapShadow {
 public:
  static constexpr uint64_t kSmall = 512;  // blocks below this size have a place

  enum class Granules : uint32_t {
    kUnused,  // there is no shadow: no word is ever found
    kShared,  // two live blocks may begin in one
    kOwn,     // no two live blocks begin in one
  };
  void use(Granules granules) { store(granules_, granules); }

  // The word for the address; nullptr: there is none, or none yet.
  uint64_t* find(uintptr_t address) const {
    if ((address & kUnusual) != 0) return nullptr;
    Middle* const* directory = directory_.entries;
    asm("" : "+r"(directory));  // a register of its own, so that the load needs no displacement
    Middle* const middle = load_acquire(directory[address >> kMiddleShift]);
    if (middle == nullptr) return nullptr;
    uint64_t* const leaf = load_acquire(middle->entries[address >> kLeafShift & (kLeaves - 1)]);
    return leaf == nullptr ? nullptr : leaf + (address >> kGranuleShift & (kLeafWords - 1));
  }
  // The word for the address, whose leaf is mapped if it is missing; nullptr: not to be had.
  uint64_t* find_or_make(uintptr_t address) {
    uint64_t* const word = find(address);
    if (word != nullptr) [[likely]]
      return word;
    return make(address);
  }

  // Puts a small block into the word of its address. kTaken: another block is there.
  enum class Put { kDone, kTaken, kReplaced };  // kReplaced: in, for one freed past the hooks
  [[gnu::always_inline]] Put put(uint64_t& word, uintptr_t address, uint64_t packed) {
    uint64_t seen = load(word);
    if (seen == 0) [[likely]] {
      if (load(granules_) == Granules::kOwn) [[likely]] {
        store_release(word, packed);
        return Put::kDone;
      }
      if (claim_exchange(word, seen, packed)) return Put::kDone;
    }
    return replace(word, seen, address, packed);
  }

  // Convert a small block to its word, and a word to its block.
  static uint64_t pack(uintptr_t address, Block block) {
    return block.stack | block.size << kSizeShift | uint64_t{block.birth} << kBirthShift |
           place_in_granule(address);
  }
  static Block unpack(uint64_t word) {
    return {word >> kSizeShift & (kSmall - 1),
            static_cast<uint32_t>(word & ((1u << kSizeShift) - 1)),
            static_cast<uint32_t>(word >> kBirthShift & kMostPackedTicks)};
  }

  // Whether `word`, of the granule of the address, holds a block at the address.
  static bool holds(uint64_t word, uintptr_t address) {
    return word != 0 && (word ^ place_in_granule(address)) >> kPlaceShift == 0;
  }
  // Takes the block of the address out of its word and returns it; stack 0: it is not there.
  [[gnu::always_inline]] static Block take(uint64_t& word, uintptr_t address) {
    const uint64_t seen = load(word);
    // Only the thread that frees this address changes a word that holds its block.
    if (!holds(seen, address)) return {};
    store_release(word, uint64_t{0});
    return unpack(seen);
  }

  // Calls visit(address, block) for every block that lives from the beginning of the call to its
  // end, and perhaps for some that do not.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    each_leaf([&](uintptr_t base, const uint64_t* leaf) {
      for (size_t i = 0; i < kLeafWords; ++i) {
        const uint64_t word = load_acquire(leaf[i]);
        if (word != 0)
          visit(base + (i << kGranuleShift) + (word >> kPlaceShift << 3), unpack(word));
      }
    });
  }

  // Resident bytes of the shadow; in a ledger file, all bytes of its parts.
  uint64_t resident() const;

  // Takes every block out; pages go back to the kernel. No other thread may be inside the library.
  void forget_all();
  // Gives pages without a block back to the kernel, in runs of 16, for 256 KiB of heap. Only for a
  // process with one thread, also in a signal handler that has interrupted a put or take.
  void give_back_zeros();

 private:
  static constexpr unsigned kGranuleShift = kShadowBits.granule;
  static constexpr unsigned kLeafShift = kShadowBits.leaf;
  static constexpr unsigned kMiddleShift = kShadowBits.middle;
  static constexpr unsigned kAddressBits = kShadowBits.end;
  static constexpr size_t kLeafWords = size_t{1} << (kLeafShift - kGranuleShift);
  static constexpr size_t kLeaves = size_t{1} << (kMiddleShift - kLeafShift);
  static constexpr size_t kMiddles = size_t{1} << (kAddressBits - kMiddleShift);
  static constexpr uintptr_t kUnusual = ~((uintptr_t{1} << kAddressBits) - 1) | 7;

  // A word: stack in 26 bits, size in 9, birth in 27, and in the highest two bits 3 and 4 of the
  // address. No block is the word 0, as no stack has the index 0.
  static constexpr unsigned kSizeShift = 26;
  static constexpr unsigned kBirthShift = 35;
  static constexpr unsigned kPlaceShift = 62;
  static_assert(kSmall == 1u << (kBirthShift - kSizeShift) &&
                kPlaceShift - kBirthShift == kPackedTickBits);

  static uint64_t place_in_granule(uintptr_t address) { return address << (kPlaceShift - 3); }
  // Addresses of the next level. Few are set, side by side: a bit for each 64th part that may have
  // one lets scans leave the other pages untouched.
  template <typename Next, size_t kSize>
  struct Level {
    static constexpr size_t kPart = kSize < 64 ? 1 : kSize / 64;
    Next* entries[kSize];
    BitSet<64> used;

    // Calls visit(number, next) for each address.
    template <typename Visit>
    void for_each(Visit&& visit) const {
      used.for_each([&](size_t part) {
        for (size_t i = part * kPart; i < (part + 1) * kPart; ++i) {
          Next* const next = load_acquire(entries[i]);
          if (next != nullptr) visit(i, *next);
        }
      });
    }
    // Call before the entry is set.
    Next*& use(size_t number) {
      used.set(number / kPart);
      return entries[number];
    }
  };
  using Middle = Level<uint64_t, kLeaves>;

  // Calls visit(first heap address of the leaf, leaf).
  template <typename Visit>
  void each_leaf(Visit&& visit) const {
    directory_.for_each([&](size_t i, const Middle& middle) {
      middle.for_each(
          [&](size_t j, uint64_t& leaf) { visit(i << kMiddleShift | j << kLeafShift, &leaf); });
    });
  }
  uint64_t* make(uintptr_t address);
  static Put replace(uint64_t& word, uint64_t seen, uintptr_t address, uint64_t packed);

  friend struct Layout;

  Level<Middle, kMiddles> directory_ = {};
  Granules granules_ = Granules::kUnused;
};

}  // namespace mtrace::ledger
