// A shadow of the heap for small blocks: for each granule of 32 bytes of heap, a word that
// describes the block that begins there. No hash, no search: shifts of the address find the word,
// and the words of neighbouring blocks are neighbours.
//
//   address  | 47 .. 34 | 33 .. 14 | 13 .. 5 |  4 3  | 2 .. 0
//            | directory|  middle  |  page   | word  |  zero
//
// A page of 4 KiB serves 16 KiB of heap (a part). It is made for a small block of a part that has
// none. The owner decides whether there is room (ledger/block_table.h); otherwise the block goes to
// the hash table. A page without a block is given back, and used again for any part.
//
// glibc's chunks have 32 bytes at least, so no two live blocks begin in one granule, and a word has
// one owner between malloc and free. With an allocator of smaller size classes two may: a word is
// then claimed, and a block that finds its word taken goes to the hash table.
//
// Thread-safe and async-signal-safe. find(), and all that a caller does with the word, is part of
// an operation (ledger/thread_slots.h), or the page could be given back meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/table_memory.h"
#include "format/ledger.h"
#include "ledger/block.h"

namespace mtrace::ledger {

struct ShadowBits {  // bits of an address below a granule's number, a part's and so on
  unsigned granule, part, middle, end;
};
#ifndef MTRACE_ATOMICS
inline constexpr ShadowBits kShadowBits = {format::kShadowGranuleBits, format::kShadowPartBits, 34,
                                           48};
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
  // Before anything else is called.
  void init() {
    if (directory_ == nullptr) directory_ = no_directory_;
  }
  void use(Granules granules);
  bool is_used() const { return load(granules_) != Granules::kUnused; }

  // The word for the address; nullptr: there is none, or none yet.
  uint64_t* find(uintptr_t address) const {
    const int64_t* const entry = entry_of(address);
    if (entry == nullptr) return nullptr;
    const int64_t page = load_acquire(*entry);
    return page <= 0 ? nullptr : word_in(page, address);
  }
  // The word for the address, also in a page that takes no more blocks because it may be given
  // back.
  uint64_t* find_also_closed(uintptr_t address) const;
  // The word for the address, whose page is made if it is missing; nullptr: not to be had.
  uint64_t* make(uintptr_t address);

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
    each_page(kAll, [&](uint32_t, const Page& page, uint64_t owner, const uint64_t* words) {
      for (size_t i = 0; i < kWords; ++i) {
        const uint64_t word = load_acquire(words[i]);
        // Given to another part meanwhile: no block of this one lived throughout.
        if (word == 0 || load(page.owner) != owner) continue;
        visit(address_of(owner, i, word), unpack(word));
      }
    });
  }

  // Bytes that pages and their addresses take. In a ledger file, also those that were given back.
  uint64_t bytes() const { return load(bytes_); }

  // Pages that were ever made, and those that serve a part.
  uint32_t made() const { return load(made_); }
  uint32_t used() const { return load(used_); }

  // Gives pages without a block back to the kernel, or in a ledger file to other parts of the heap,
  // in two steps; one thread at a time. The first closes them. Before the second, each other thread
  // must have been outside an operation. Of pages with these numbers:
  struct Range {
    uint32_t from, to;
  };
  void close_empty(Range range);
  // `outside`: each other thread has been outside since; otherwise opens the pages again.
  void give_back(Range range, bool outside);
  // Calls move(address, block) for each block of pages that have few; true: takes it out. No other
  // thread may be inside the library.
  template <typename Move>
  void thin_out(Range range, Move&& move) {
    each_page(range, [&](uint32_t, const Page&, uint64_t owner, uint64_t* words) {
      if (count(words) > kThin) return;
      for (size_t i = 0; i < kWords; ++i) {
        const uint64_t word = words[i];
        if (word != 0 && move(address_of(owner, i, word), unpack(word))) words[i] = 0;
      }
    });
  }
  // Takes every block out, and gives all pages back. No other thread may be inside the library.
  void forget_all();
  // In the single-threaded child of a fork: opens the pages that another thread had closed.
  void repair();
  // Before the tables are filled with zeros: unmaps what they alone lead to.
  void drop_index();

 private:
  static constexpr unsigned kGranuleShift = kShadowBits.granule;
  static constexpr unsigned kPartShift = kShadowBits.part;
  static constexpr unsigned kMiddleShift = kShadowBits.middle;
  static constexpr unsigned kAddressBits = kShadowBits.end;
  static constexpr size_t kWords = size_t{1} << (kPartShift - kGranuleShift);
  static constexpr size_t kPageBytes = kWords * sizeof(uint64_t);
  static constexpr size_t kParts = size_t{1} << (kMiddleShift - kPartShift);
  static constexpr size_t kMiddles = size_t{1} << (kAddressBits - kMiddleShift);
  static constexpr uintptr_t kUnusual = ~((uintptr_t{1} << kAddressBits) - 1) | 7;

  static constexpr size_t kThin = 64;  // blocks of a page that has few

  // Of a word (format::LedgerShadowPage). No block is the word 0, as no stack has the index 0.
  static constexpr unsigned kSizeShift = format::kShadowStackBits;
  static constexpr unsigned kBirthShift = kSizeShift + format::kShadowSizeBits;
  static constexpr unsigned kPlaceShift = format::kShadowPlaceShift;
  static_assert(kSmall == 1u << (kBirthShift - kSizeShift) &&
                kPlaceShift - kBirthShift == kPackedTickBits);
  static uint64_t place_in_granule(uintptr_t address) { return address << (kPlaceShift - 3); }

  // Addresses of pages, by part; negative, with the highest bit set: the page is closed, takes no
  // more blocks and may be given back; 0: none. Like the directory memory of this process alone,
  // also if the pages are in a file: a child of fork must not find what its parent maps later.
  static constexpr size_t kEntriesAPage = 4096 / sizeof(int64_t);
  struct Middle {
    int64_t pages[kParts];
    BitSet<(kParts + kEntriesAPage - 1) / kEntriesAPage> touched;  // a bit a page of addresses
  };
  static constexpr int64_t kClosed = INT64_MIN;
  static uint64_t* word_in(int64_t page, uintptr_t address) {
    return reinterpret_cast<uint64_t*>(page) + (address >> kGranuleShift & (kWords - 1));
  }
  // nullptr: nothing near the address has a page.
  int64_t* entry_of(uintptr_t address) const {
    if ((address & kUnusual) != 0) return nullptr;
    Middle* const middle = load_acquire(directory_[address >> kMiddleShift]);
    return middle == nullptr ? nullptr : &middle->pages[address >> kPartShift & (kParts - 1)];
  }

  // What is known of a page, by its number. `owner`: the part's first address and 1; of a page that
  // is free, twice the number of the next free one and 2, or 0. `chunk`: the words of kChunk pages,
  // at the first of them.
  struct Page {
    uint64_t owner;
    uint64_t* chunk;
  };
  static constexpr uint32_t kChunk = kWords == 512 ? format::kShadowChunk : 4;
  static constexpr uint32_t kNone = UINT32_MAX;
#ifndef MTRACE_ATOMICS
  using Pages = GrowingArray<Page, format::kShadowPages>;
#else
  using Pages = GrowingArray<Page, 4, 64>;
#endif
  static uintptr_t start_of(uint64_t owner) { return owner & ~uint64_t{1}; }
  static uintptr_t address_of(uint64_t owner, size_t granule, uint64_t word) {
    return start_of(owner) + (granule << kGranuleShift) + (word >> kPlaceShift << 3);
  }

  uint64_t* words_of(uint32_t number) const {
    const Page* const first = pages_.find(number / kChunk * kChunk);
    uint64_t* const words = first == nullptr ? nullptr : load_acquire(first->chunk);
    return words == nullptr ? nullptr : words + number % kChunk * kWords;
  }
  // Calls visit(number, page, owner, words) for each page that serves a part.
  template <typename Visit>
  void each_page(Range range, Visit&& visit) const {
    const uint32_t made = load_acquire(made_);
    for (uint32_t number = range.from; number < made && number < range.to; ++number) {
      Page* const page = pages_.find(number);
      const uint64_t owner = page == nullptr ? 0 : load_acquire(page->owner);
      if ((owner & 1) != 0) visit(number, *page, owner, words_of(number));
    }
  }
  static constexpr Range kAll = {0, UINT32_MAX};
  static size_t count(const uint64_t* words);
  void grew(uint64_t bytes);
  uint32_t new_page();
  uint32_t take_free();
  void add_free(uint32_t number);
  void empty(uint32_t from, uint32_t to);
  template <typename IsFree>
  void give_back_those(Range range, IsFree&& is_free);
  static Put replace(uint64_t& word, uint64_t seen, uintptr_t address, uint64_t packed);

  friend struct Layout;

  static Middle* no_directory_[kMiddles];

  Middle** directory_ = nullptr;  // of kMiddles
  Granules granules_ = Granules::kUnused;
  uint32_t made_ = 0;     // pages
  uint64_t free_ = 0;     // the first free page's number and 1, or 0; above it a count of changes
  uint32_t emptied_ = 0;  // packed ticks: when pages were last given back
  uint32_t used_ = 0;     // pages that serve a part
  uint64_t bytes_ = 0;
  Pages pages_;
};

}  // namespace mtrace::ledger
