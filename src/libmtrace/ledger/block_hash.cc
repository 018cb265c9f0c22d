#include "ledger/block_hash.h"

#include <algorithm>

#include "base/probe.h"
#include "base/table_memory.h"

namespace mtrace::ledger {

bool BlockHash::init() {
  uint64_t before = 0;
  for (uint32_t number = 0; number < kMaxLevels; ++number) {
    levels_[number].lines = number == 0 ? kFirstLines : before / 4 * 3;
    levels_[number].number = number;
    before += levels_[number].lines;
  }
  return make_level(0);
}

// False: no memory. Without a ledger file, threads that come at once all map memory: to wait could
// mean to wait for a stopped thread.
bool BlockHash::make_level(uint32_t number) {
  Level& level = levels_[number];
  Slot* slots = base::table_memory(level.slots_made, level.bytes());
  if (slots == nullptr) return false;
  // Every thread writes the same value.
  store(level.reach_made, reinterpret_cast<uint8_t*>(slots + level.lines * kLine));
  return true;
}

// Has new blocks go to the level after `full`, unless they go to another already. False: no memory.
bool BlockHash::add_level(uint32_t full) {
  // Not to one whose memory is being given back.
  const uint32_t next = (load(retiring_) != 0 ? load(highest_) : full) + 1;
  if (next >= kMaxLevels) return false;
  if (!make_level(next)) return false;
  base::tables_grew(exchange(empty_[next], uint64_t{0}));
  uint32_t highest = load(highest_);
  while (highest < next && !compare_exchange(highest_, highest, next)) {
  }
  // The thread that made the level may not have published it yet.
  compare_exchange(newest_, full, next);
  return true;
}

// Removes blocks with the address of `put` up to `distance` lines from its home: they were freed
// past the hooks. No other thread of the program uses the address meanwhile. False: there are none.
bool BlockHash::drop_older(const Level& level, uint64_t line, const Slot& put, unsigned distance) {
  const uint64_t wanted = load(put.key) & kAddressMask;
  bool dropped = false;
  for (unsigned d = 0; d <= distance; ++d) {
    Slot* slots = level.line(line + d);
    for (unsigned here = places(slots, wanted, kAddressMask); here != 0; here &= here - 1) {
      Slot* slot = slots + std::countr_zero(here);
      if (slot == &put) continue;
      const Slot seen = {load(slot->key), load(slot->value)};
      // A report may be dropping the block at this moment.
      uint64_t key = seen.key;
      if (!compare_exchange(slot->key, key, kReserved)) continue;
      const Block older = unpack(seen);
      release(slot);
      missed_free(address_of(seen), older);
      dropped = true;
    }
  }
  return dropped;
}

void BlockHash::extend_reach(const Level& level, uint64_t line, const Slot& put,
                             unsigned distance) {
  uint8_t& reach = level.reach(line);
  uint8_t seen = load(reach);
  while (seen < distance && !compare_exchange(reach, seen, static_cast<uint8_t>(distance))) {
  }
  if (distance < kCrowded || level.number != load(newest_)) return;
  // A program that frees past the hooks must not make the table grow for ever.
  if (drop_older(level, line, put, distance)) return;
  uint32_t& crowded = crowded_[level.number];
  if (fetch_add(crowded, 1u) < level.lines / kMostCrowded) return;
  // Some heaps crowd in few lines.
  if (fullness(level) >= kFull) {
    add_level(static_cast<uint32_t>(level.number));
  } else {
    store(crowded, 0u);
  }
}

// Places used of a hundred of the level, by a sample of its lines.
unsigned BlockHash::fullness(const Level& level) {
  constexpr unsigned kSample = 64;
  unsigned used = 0;
  for (unsigned i = 0; i < kSample; ++i) {
    const Slot* const slots = level.line(level.lines / kSample * i);
    for (unsigned s = 0; s < kLine; ++s) used += !is_free(slots[s]);
  }
  return used * 100 / (kSample * kLine);
}

uint64_t BlockHash::bytes() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i <= load_acquire(highest_); ++i)
    sum += levels_[i].bytes() - load(empty_[i]);
  const uint32_t newest = load_acquire(newest_);
  if (newest < load(highest_) || newest + 1 == kMaxLevels) return sum;
  return sum + levels_[newest + 1].bytes() / 100 * fullness(levels_[newest]);
}

uint64_t BlockHash::pages() const {
  uint64_t places = 0;
  for (uint32_t i = 0; i <= load_acquire(highest_); ++i) places += levels_[i].lines * kLine;
  return places / kPage;
}

void BlockHash::retire_levels() {
  constexpr uint64_t kSparse = 8;
  uint64_t used = 0;  // lines' worth
  uint64_t lines = 0;
  for (uint32_t i = 0; i <= load_acquire(highest_); ++i) {
    lines += levels_[i].lines;
    used += levels_[i].lines * fullness(levels_[i]) / 100;
  }
  store(retiring_, 1u);
  if (used * kSparse >= lines) return;
  uint32_t smallest = 0;
  while (smallest < load(newest_) && levels_[smallest].lines < 2 * used) ++smallest;
  base::tables_grew(exchange(empty_[smallest], uint64_t{0}));
  store(crowded_[smallest], 0u);
  store_release(newest_, smallest);
}

void BlockHash::give_back(uint64_t pages, bool outside, bool alone) {
  // With a limit, new blocks go wherever a place is free.
  if (outside && !base::tables_in_file() && !base::may_be_filtered()) {
    const bool moves = alone && fullness(levels_[load_acquire(newest_)]) < 50;
    while (pages > 0) pages = give_back_some(pages, moves);
  }
  store_release(retiring_, 0u);
}

// Moves the blocks of a page to the newest level, if they are few; not one of a realloc under way.
// True: none are left.
bool BlockHash::move_away(Slot* slots) {
  constexpr long kThin = 64;
  if (std::count_if(slots, slots + kPage, is_free) < static_cast<long>(kPage) - kThin) return false;
  const Level& newest = levels_[load_acquire(newest_)];
  for (Slot* slot = slots; slot < slots + kPage; ++slot) {
    if (slot->key > kReserved && put_in(newest, address_of(*slot), *slot)) clear(slot);
  }
  return std::all_of(slots, slots + kPage, is_free);
}

// Gives back a run of empty pages, or steps over one that is not. Returns how many of `pages` are
// left to look at.
uint64_t BlockHash::give_back_some(uint64_t pages, bool moves) {
  const Level& level = levels_[hand_level_];
  const uint64_t whole = level.lines * kLine / kPage * kPage;  // `reach` begins behind it
  if (hand_level_ > load_acquire(highest_) || hand_level_ == load(newest_) || hand_ >= whole) {
    end_level();
    return pages - 1;
  }
  Slot* const slots = level.slots();
  const uint64_t from = hand_;
  while (pages > 0 && hand_ < whole &&
         (std::all_of(slots + hand_, slots + hand_ + kPage, is_free) ||
          (moves && move_away(slots + hand_)))) {
    hand_ += kPage;
    --pages;
  }
  const uint64_t bytes = (hand_ - from) * sizeof(Slot);
  if (bytes != 0) {
    if (base::give_back(slots + from, bytes)) hand_empty_ += bytes;
    return pages;
  }
  hand_ += kPage;
  return pages - 1;
}

// The hand is at the end of its level, and goes to the one before, or the highest.
void BlockHash::end_level() {
  const uint32_t number = hand_level_;
  const Level& level = levels_[number];
  const uint64_t count = level.lines * kLine;
  const uint64_t whole = count / kPage * kPage;
  if (number != load(newest_) && number <= load(highest_) && hand_ >= whole) {
    base::tables_grew(exchange(empty_[number], hand_empty_) - hand_empty_);
    const Slot* const slots = level.slots();
    if (number == load(highest_) && hand_empty_ == whole * sizeof(Slot) &&
        std::all_of(slots, slots + count, is_free)) {
      // Nothing is here any more, also if the level took blocks again after a part of it had been
      // looked at; and nothing comes until it is added again.
      for (uint64_t line = 0; line < level.lines; ++line) store(level.reach(line), uint8_t{0});
      store(crowded_[number], 0u);
      store(highest_, number - 1);
    }
  }
  hand_ = hand_empty_ = 0;
  hand_level_ = number == 0 || number > load(highest_) + 1 ? load(highest_) : number - 1;
}

void BlockHash::forget_all() {
  each_slot([&](Slot& slot) {
    if (slot.key != 0) release(&slot);
  });
  lost_blocks_ = 0;
}

uint64_t BlockHash::large_size(uint64_t index) const {
  const uint64_t* size = large_.find(static_cast<uint32_t>(index));
  return size != nullptr ? load(*size) : 0;
}

void BlockHash::forget_large(const Slot& slot) {
  const uint64_t field = size_field(slot.value);
  uint64_t* size = large_.find(static_cast<uint32_t>(field - kLarge));
  if (size != nullptr) store(*size, uint64_t{0});
}

// Puts a block that does not fit the packed form: one of 512 MiB or more, whose size goes to
// large_, or one at an address that no common allocator returns, which counts as lost.
bool BlockHash::put_unusual(const Place& place, const Block& block) {
  const bool usual_address = (place.address & ~(kAddressMask << 3)) == 0;
  for (uint32_t index = 0; usual_address && index < kMostLarge; ++index) {
    uint64_t* size = large_.find_or_create(index);
    if (size == nullptr) break;
    uint64_t expected = 0;
    if (load(*size) != 0 || !compare_exchange(*size, expected, block.size)) continue;
    const Slot packed = pack(place.address, {kLarge + index, block.stack, block.birth});
    if (put_at(*place.level, place.home, packed) || put_slowly(place.address, packed)) return true;
    store(*size, uint64_t{0});
    return false;
  }
  fetch_add<uint64_t>(lost_blocks_, 1);
  return false;
}

bool BlockHash::put_in(const Level& level, uintptr_t address, const Slot& packed) {
  return put_at(level, home(level, address), packed);
}

bool BlockHash::put_slowly(uintptr_t address, const Slot& packed) {
  // The newest level is full around this block's home. Each round makes the next level, or finds
  // one that another thread has made.
  for (uint32_t full = load_acquire(newest_); add_level(full); full = load_acquire(newest_)) {
    if (put_in(levels_[load_acquire(newest_)], address, packed)) return true;
  }
  for (uint32_t i = load_acquire(highest_) + 1; i-- > 0 && load(retiring_) == 0;) {
    if (put_in(levels_[i], address, packed)) return true;
  }
  fetch_add<uint64_t>(lost_blocks_, 1);
  return false;
}

}  // namespace mtrace::ledger
