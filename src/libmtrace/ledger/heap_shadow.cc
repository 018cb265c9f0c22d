#include "ledger/heap_shadow.h"

#include <algorithm>

#include "base/probe.h"
#include "base/syscall.h"
#include "base/table_memory.h"

namespace mtrace::ledger {

HeapShadow::Middle* HeapShadow::no_directory_[kMiddles];

void HeapShadow::use(Granules granules) {
  init();
  if (granules != Granules::kUnused && directory_ == no_directory_) {
    void* const fresh = base::map_sparse_memory(sizeof no_directory_);
    if (fresh == nullptr) granules = Granules::kUnused;
    if (fresh != nullptr) directory_ = static_cast<Middle**>(fresh);
  }
  store(granules_, granules);
}

uint64_t* HeapShadow::find_also_closed(uintptr_t address) const {
  const int64_t* const entry = entry_of(address);
  const int64_t page = entry == nullptr ? 0 : load_acquire(*entry) & ~kClosed;
  return page == 0 ? nullptr : word_in(page, address);
}

uint64_t* HeapShadow::make(uintptr_t address) {
  if ((address & kUnusual) != 0 || !is_used()) return nullptr;
  // A filter of system calls may end the program at an mmap; the hash table usually has room.
  if (base::may_be_filtered()) return nullptr;
  Middle*& known = directory_[address >> kMiddleShift];
  Middle* const middle = base::private_memory(known, sizeof(Middle), base::map_sparse_memory,
                                              [&] { grew(kEntriesAPage * sizeof(int64_t)); });
  if (middle == nullptr) return nullptr;
  int64_t& entry = middle->pages[address >> kPartShift & (kParts - 1)];
  if (load(entry) == 0) {
    uint32_t number = take_free();
    if (number == kNone) number = new_page();
    if (number == kNone) return nullptr;
    // Before the page is found, so that a scan sees each block in it.
    store_release(pages_.find(number)->owner, (address >> kPartShift << kPartShift) | 1);
    const size_t entries = (address >> kPartShift & (kParts - 1)) / kEntriesAPage;
    if (!middle->touched.has(entries)) {
      middle->touched.set(entries);
      grew(kEntriesAPage * sizeof(int64_t));
    }
    int64_t none = 0;
    if (compare_exchange(entry, none, reinterpret_cast<int64_t>(words_of(number)))) {
      fetch_add(used_, 1u);
    } else {
      add_free(number);  // another thread has made one for the part
    }
  }
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

void HeapShadow::grew(uint64_t bytes) {
  fetch_add(bytes_, bytes);
  base::tables_grew(bytes);
}

// Returns the number of a page that never served a part; kNone: no memory.
uint32_t HeapShadow::new_page() {
  uint32_t number = load(made_);
  do {
    Page* const first = pages_.find_or_create(number / kChunk * kChunk);
    if (first == nullptr || pages_.find_or_create(number) == nullptr ||
        base::table_memory(first->chunk, kChunk * kPageBytes, true) == nullptr) {
      return kNone;
    }
  } while (!compare_exchange(made_, number, number + 1));
  grew(kPageBytes);
  return number;
}

uint32_t HeapShadow::take_free() {
  // A thread that remembers its last block by word and content must not find both in another part,
  // so the page has no block of the same time.
  uint64_t head = load_acquire(free_);
  if (static_cast<uint32_t>(head) == 0 || load(emptied_) == pack_ticks(ticks_now())) return kNone;
  uint32_t number;
  do {
    number = static_cast<uint32_t>(head) - 1;
    if (number == kNone) return kNone;
    // The next, unless another thread takes the page first: `head` has changed then.
    const uint64_t next = load(pages_.find(number)->owner) >> 1;
    const uint64_t rest = ((head >> 32) + 1) << 32 | static_cast<uint32_t>(next);
    if (compare_exchange(free_, head, rest)) break;
  } while (true);
  if (!base::tables_in_file()) grew(kPageBytes);
  return number;
}

void HeapShadow::add_free(uint32_t number) {
  uint64_t head = load(free_);
  do {
    store_release(pages_.find(number)->owner, uint64_t{static_cast<uint32_t>(head)} << 1);
  } while (!compare_exchange(free_, head, ((head >> 32) + 1) << 32 | (number + 1)));
}

// Frees pages that serve no part any more, of one chunk.
void HeapShadow::empty(uint32_t from, uint32_t to) {
  if (from == to) return;
  uint64_t* const words = words_of(from);
  const size_t count = (to - from) * kWords;
  if (!base::tables_in_file() && base::give_back(words, count * sizeof words[0])) {
    grew(-(count * sizeof words[0]));
  } else {
    std::replace_if(
        words, words + count, [](uint64_t word) { return word != 0; }, 0);
  }
  for (uint32_t number = from; number < to; ++number) add_free(number);
  fetch_add(used_, from - to);
}

// Number of blocks in a page.
size_t HeapShadow::count(const uint64_t* words) {
  size_t sum = 0;
  for (size_t i = 0; i < kWords; ++i) sum += load(words[i]) != 0;
  return sum;
}

void HeapShadow::close_empty(Range range) {
  each_page(range, [&](uint32_t, const Page&, uint64_t owner, const uint64_t* words) {
    int64_t* const entry = entry_of(start_of(owner));
    // Another: the page is being made.
    if (entry == nullptr || load(*entry) != reinterpret_cast<int64_t>(words)) return;
    if (count(words) == 0) store(*entry, load(*entry) | kClosed);
  });
}

// Gives pages back that serve a part and for which is_free(entry, words).
template <typename IsFree>
void HeapShadow::give_back_those(Range range, IsFree&& is_free) {
  store(emptied_, pack_ticks(ticks_now()));  // before one of them can be taken
  uint32_t from = 0;
  uint32_t to = 0;
  each_page(range, [&](uint32_t number, Page& page, uint64_t owner, const uint64_t* words) {
    int64_t* const entry = entry_of(start_of(owner));
    if (entry == nullptr || !is_free(*entry, words)) return;
    store(*entry, int64_t{0});
    store(page.owner, uint64_t{0});
    if (number != to || number % kChunk == 0) {
      empty(from, to);
      from = number;
    }
    to = number + 1;
  });
  empty(from, to);
}

void HeapShadow::give_back(Range range, bool outside) {
  // Whoever found a word in one of them has put a block there by now, and no other does.
  give_back_those(range, [&](int64_t& entry, const uint64_t* words) {
    const int64_t open = load(entry) & ~kClosed;
    if (load(entry) == open || open != reinterpret_cast<int64_t>(words)) return false;
    if (outside && count(words) == 0) return true;
    store_release(entry, open);
    return false;
  });
}

void HeapShadow::forget_all() {
  give_back_those(kAll, [](const int64_t&, const uint64_t*) { return true; });
}

void HeapShadow::repair() {
  each_page(kAll, [&](uint32_t, const Page&, uint64_t owner, const uint64_t*) {
    if (int64_t* const entry = entry_of(start_of(owner))) *entry &= ~kClosed;
  });
}

void HeapShadow::drop_index() {
  each_page(kAll, [&](uint32_t, const Page&, uint64_t owner, const uint64_t*) {
    Middle*& middle = directory_[start_of(owner) >> kMiddleShift];
    if (middle != nullptr) base::unmap_memory(middle, sizeof(Middle));
    middle = nullptr;
  });
  if (directory_ != nullptr && directory_ != no_directory_) {
    base::unmap_memory(directory_, sizeof no_directory_);
  }
  directory_ = nullptr;
}

}  // namespace mtrace::ledger
