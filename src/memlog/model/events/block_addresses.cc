#include "model/events/block_addresses.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "model/events/column.h"

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

namespace {

constexpr uint64_t kUnit = 16;  // bytes

// What a block takes with its header, as glibc rounds it.
uint64_t units_of(uint64_t requested) { return std::max<uint64_t>((requested + 23) / kUnit, 2); }

}  // namespace

// In units; 255 and more are one.
uint64_t BlockHistory::size_class(uint64_t requested) {
  constexpr uint64_t kLargest = 255;
  return requested >= kLargest * kUnit ? kLargest : units_of(requested);
}

uint64_t BlockHistory::take_number(uint64_t address, uint32_t thread, uint64_t requested) {
  if (const auto list = freed_.find(list_of(thread, size_class(requested))); list != freed_.end()) {
    if (const size_t later = take_from(list->second, address); later < kMostReused) {
      return kReused + later;
    }
  }
  const Thread& state = state_of(thread);
  if (state.last_freed == address) return kLastFreed;
  const auto* const behind = std::find(state.behind, std::end(state.behind), address);
  return behind == std::end(state.behind) ? kElsewhere
                                          : kBehind + static_cast<uint64_t>(behind - state.behind);
}

uint64_t BlockHistory::take_address(uint64_t number, uint32_t thread, uint64_t requested) {
  if (number < kReused) {
    const Thread& state = state_of(thread);
    return number == kLastFreed ? state.last_freed : state.behind[number - kBehind];
  }
  const auto list = freed_.find(list_of(thread, size_class(requested)));
  const uint64_t later = number - kReused;
  if (list == freed_.end() || later >= list->second.size() || later >= kMostReused) {
    throw DamagedChunk();
  }
  const auto at = list->second.end() - 1 - static_cast<ptrdiff_t>(later);
  const uint64_t address = *at;
  list->second.erase(at);
  return address;
}

// Takes the address out of the list, if it is among the last. Returns how many are behind it, or
// kMostReused.
size_t BlockHistory::take_from(Freed& freed, uint64_t address) {
  const size_t most = std::min<size_t>(freed.size(), kMostReused);
  const auto stop = freed.rbegin() + static_cast<ptrdiff_t>(most);
  const auto at = std::find(freed.rbegin(), stop, address);
  if (at == stop) return kMostReused;
  const auto later = static_cast<size_t>(at - freed.rbegin());
  freed.erase(at.base() - 1);
  return later;
}

BlockHistory::Thread& BlockHistory::state_of(uint32_t thread) {
  if (thread >= threads_.size()) threads_.resize(thread + size_t{1});
  return threads_[thread];
}

void BlockHistory::remember_end(Thread& thread, uint64_t number, uint64_t end) {
  const uint64_t place = number == kElsewhere ? kNewBlocks - 1 : number - kBehind;
  std::move_backward(thread.behind, thread.behind + place, thread.behind + place + 1);
  thread.behind[0] = end;
}

uint32_t BlockHistory::allocate(uint64_t number, uint64_t address, uint32_t thread,
                                uint64_t requested) {
  if (number < kReused) {
    Thread& state = state_of(thread);
    if (number != kLastFreed) {
      remember_end(state, number, address + units_of(requested) * kUnit);
    } else if (const auto list = freed_.find(list_of(thread, state.last_class));
               list != freed_.end()) {
      take_from(list->second, address);
    }
  }
  blocks_.push_back({address, size_class(requested)});
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
  Thread& state = state_of(thread);
  state.last_freed = block.address;
  state.last_class = block.size_class;
  return block.address;
}

uint64_t BlockHistory::last_freed(uint32_t thread) const {
  return thread < threads_.size() ? threads_[thread].last_freed : 0;
}

void BlockHistory::free_elsewhere(uint64_t address, uint32_t thread) {
  Thread& state = state_of(thread);
  state.last_freed = address;
  state.last_class = 0;
}

uint64_t BlockNames::allocate(uint64_t address, uint32_t thread, uint64_t requested) {
  const uint64_t number = history_.take_number(address, thread, requested);
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
