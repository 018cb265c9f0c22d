#include "events/block_addresses.h"

#include <algorithm>
#include <bit>

#include "events/column.h"

namespace mtrace::events {

void LiveOrder::add() {
  if (size_ % kWord == 0) {
    words_.push_back(0);
    in_word_.push_back(0);
  }
  if (size_ % (kWord * kGroup) == 0) in_group_.push_back(0);
  words_.back() |= uint64_t{1} << size_ % kWord;
  ++in_word_.back();
  ++in_group_.back();
  ++size_;
  ++count_;
}

void LiveOrder::remove(size_t item) {
  const size_t word = item / kWord;
  words_[word] &= ~(uint64_t{1} << item % kWord);
  --in_word_[word];
  --in_group_[word / kGroup];
  --count_;
}

size_t LiveOrder::younger(size_t item) const {
  size_t word = item / kWord;
  const uint64_t later = words_[word] >> item % kWord >> 1;
  auto count = static_cast<size_t>(std::popcount(later));
  while (++word % kGroup != 0 && word < in_word_.size()) count += in_word_[word];
  for (size_t group = item / kWord / kGroup + 1; group < in_group_.size(); ++group) {
    count += in_group_[group];
  }
  return count;
}

size_t LiveOrder::find(size_t younger) const {
  size_t group = in_group_.size() - 1;
  for (; younger >= in_group_[group]; --group) younger -= in_group_[group];
  size_t word = std::min((group + 1) * kGroup, in_word_.size()) - 1;
  for (; younger >= in_word_[word]; --word) younger -= in_word_[word];
  uint64_t bits = words_[word];
  for (; younger != 0; --younger) bits &= ~std::bit_floor(bits);
  return word * kWord + static_cast<size_t>(std::bit_width(bits)) - 1;
}

// In units of 16 bytes, as glibc rounds them; 255 and more are one.
uint64_t BlockHistory::size_class(uint64_t requested) {
  constexpr uint64_t kLargest = 255;
  return requested >= kLargest * 16 ? kLargest : std::max<uint64_t>((requested + 23) / 16, 2);
}

uint64_t BlockHistory::number_of(uint64_t address, uint32_t thread, uint64_t requested) const {
  if (const auto list = freed_.find(list_of(thread, size_class(requested))); list != freed_.end()) {
    const Freed& freed = list->second;
    const size_t most = std::min<size_t>(freed.size(), kMostReused);
    for (size_t i = 0; i < most; ++i) {
      if (freed[freed.size() - 1 - i] == address) return kReused + i;
    }
  }
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return kElsewhere;
  if (found->second.last_freed == address) return kLastFreed;
  for (size_t i = 0; i < kNewBlocks; ++i) {
    if (found->second.behind[i] == address) return kBehind + i;
  }
  return kElsewhere;
}

uint64_t BlockHistory::address_of(uint64_t number, uint32_t thread, uint64_t requested) const {
  if (number >= kReused) {
    const auto list = freed_.find(list_of(thread, size_class(requested)));
    const uint64_t later = number - kReused;
    if (list == freed_.end() || later >= list->second.size() || later >= kMostReused) {
      throw DamagedChunk();
    }
    return list->second[list->second.size() - 1 - later];
  }
  const auto found = threads_.find(thread);
  if (found == threads_.end()) throw DamagedChunk();
  return number == kLastFreed ? found->second.last_freed : found->second.behind[number - kBehind];
}

// It is no longer among the freed blocks, if it is among the last of that list.
void BlockHistory::take_back(uint64_t list, uint64_t address) {
  const auto found = freed_.find(list);
  if (found == freed_.end()) return;
  Freed& freed = found->second;
  const auto stop =
      freed.rbegin() + static_cast<ptrdiff_t>(std::min<size_t>(freed.size(), kMostReused));
  const auto at = std::find(freed.rbegin(), stop, address);
  if (at != stop) freed.erase(at.base() - 1);
}

void BlockHistory::remember_end(Thread& thread, uint64_t number, uint64_t end) {
  const uint64_t place = number == kElsewhere ? kNewBlocks - 1 : number - kBehind;
  std::move_backward(thread.behind, thread.behind + place, thread.behind + place + 1);
  thread.behind[0] = end;
}

uint32_t BlockHistory::allocate(uint64_t number, uint64_t address, uint32_t thread,
                                uint64_t requested) {
  const uint64_t of_size = size_class(requested);
  if (number >= kReused) {
    take_back(list_of(thread, of_size), address);
  } else {
    Thread& state = threads_[thread];
    if (number == kLastFreed) {
      take_back(list_of(thread, state.last_class), address);
    } else {
      remember_end(state, number, address + std::max<uint64_t>((requested + 23) / 16, 2) * 16);
    }
  }
  blocks_.push_back({address, of_size});
  live_.add();
  return static_cast<uint32_t>(blocks_.size() - 1);
}

uint32_t BlockHistory::freed_block(uint64_t number) const {
  if (number > live_.count()) throw DamagedChunk();
  return static_cast<uint32_t>(live_.find(number - 1));
}

uint64_t BlockHistory::free(uint32_t index, uint32_t thread) {
  const Block& block = blocks_[index];
  live_.remove(index);
  freed_[list_of(thread, block.size_class)].push_back(block.address);
  Thread& state = threads_[thread];
  state.last_freed = block.address;
  state.last_class = block.size_class;
  return block.address;
}

bool BlockHistory::freed_last(uint64_t address, uint32_t thread) const {
  const auto found = threads_.find(thread);
  return found != threads_.end() && found->second.last_freed == address;
}

void BlockHistory::free_elsewhere(uint64_t address, uint32_t thread) {
  Thread& state = threads_[thread];
  state.last_freed = address;
  state.last_class = 0;
}

uint64_t BlockNames::allocate(uint64_t address, uint32_t thread, uint64_t requested) {
  const uint64_t number = history_.number_of(address, thread, requested);
  indexes_[address] = history_.allocate(number, address, thread, requested);
  return number;
}

uint64_t BlockNames::free(uint64_t address, uint32_t thread) {
  const auto found = indexes_.find(address);
  if (found == indexes_.end()) {
    history_.free_elsewhere(address, thread);
    return BlockHistory::kNoBlock;
  }
  const uint32_t index = found->second;
  indexes_.erase(found);
  const uint64_t number = history_.number_of_free(index);
  history_.free(index, thread);
  return number;
}

}  // namespace mtrace::events
