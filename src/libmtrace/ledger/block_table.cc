#include "ledger/block_table.h"

#include "base/process.h"

namespace mtrace::ledger {

OnMissedFree g_on_missed_free = nullptr;

// A free searches the shadow first: it must not find an older small block of the same address.
void BlockTable::drop_from_shadow(uintptr_t address) {
  uint64_t* const word = shadow_.find_also_closed(address);
  if (word != nullptr && HeapShadow::holds(load(*word), address)) [[unlikely]] {
    missed_free(address, HeapShadow::take(*word, address));
  }
}

void BlockTable::look_for_room() {
  const uint64_t most = process_.live_blocks() * kMostBytesABlock + kMostBytesOfFew;
  const uint64_t others = hash_.bytes();
  store(room_, most > others ? most - others : 1);
}

// Whether the shadow may have a page for the address.
bool BlockTable::has_room(uintptr_t address) {
  if (shadow_.bytes() < load(room_)) return true;
  // To look each time would cost too much where there is none: one address of 64 looks.
  constexpr unsigned kSeldom = 6;
  if (load(room_) != 0 && (address >> 4) * 0x9e3779b97f4a7c15u >> (64 - kSeldom) != 0) return false;
  look_for_room();
  return shadow_.bytes() < load(room_);
}

uint64_t* BlockTable::make_small(uintptr_t address) {
  if (!shadow_.is_used()) return nullptr;
  if (shadow_.used() >= load(looked_at_) + kStep / 2) give_back_empty(true);
  return has_room(address) ? shadow_.make(address) : nullptr;
}

// From now on there is something to give back once much is freed.
void BlockTable::watch() {
  store(levels_, hash_.levels());
  store(looked_at_, shadow_.used());
  if (process_.has_grown != nullptr) process_.has_grown(steps());
}

void BlockTable::give_back_some(bool inside) {
  // Nobody else takes a block that is being moved.
  const bool alone = single_threaded() && process_.all_were_outside(inside);
  if (hand_ >= shadow_.made()) hand_ = 0;
  const HeapShadow::Range range = {hand_, hand_ + kStep};
  hand_ = range.to;
  hash_.retire_levels();
  look_for_room();
  if (alone && shadow_.bytes() > load(room_)) {
    shadow_.thin_out(
        range, [&](uintptr_t address, const Block& block) { return hash_.put(address, block); });
  }
  shadow_.close_empty(range);
  const bool outside = process_.all_were_outside(inside);
  shadow_.give_back(range, outside);
  hash_.give_back(kStep, outside, alone);
}

void BlockTable::give_back_empty(bool inside) {
  if (exchange(closing_, 1u) != 0) return;
  // A handler that jumps away must not leave it half done.
  const uint64_t mask = base::block_signals();
  for (uint64_t left = inside ? 1 : steps(); left > 0; --left) give_back_some(inside);
  store(room_, uint64_t{0});
  watch();
  base::restore_signals(mask);
  store_release(closing_, 0u);
}

void BlockTable::after_fork() {
  if (closing_ == 0) return;
  closing_ = 0;
  shadow_.repair();
  hash_.give_back(0, false, true);
}

bool BlockTable::put_in_hash(uintptr_t address, Block block) {
  drop_from_shadow(address);
  const bool placed = hash_.put(address, block);
  if (hash_.levels() > load(levels_)) [[unlikely]]
    watch();
  return placed;
}

Block BlockTable::take_from_hash(uintptr_t address) {
  uint64_t* const word = shadow_.find_also_closed(address);
  Block block = word != nullptr ? HeapShadow::take(*word, address) : Block{};
  if (block.stack != 0) return block;
  return hash_.take(address, &block) ? block : Block{};
}

bool BlockTable::put_beside(HeapShadow::Put put, uintptr_t address, Block block) {
  return put == HeapShadow::Put::kReplaced || hash_.put(address, block);
}

}  // namespace mtrace::ledger
