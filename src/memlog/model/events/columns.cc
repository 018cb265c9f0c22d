#include "model/events/columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <string_view>

#include "format/calls.h"
#include "format/event_log.h"

namespace mtrace::events {
namespace {

using format::EventCode;

struct CodedKind {
  Kind kind = Kind::kUnknown;
  bool has_stack = false;
};

// By the code of the event, those below EventCode::kAllocation.
constexpr CodedKind kWithoutCall[] = {
    {},
    {Kind::kReallocBegin},
    {Kind::kReallocFailed},
    {Kind::kMap, true},
    {Kind::kUnmap},
    {Kind::kRemap, true},
    {Kind::kThreadBegin},
    {Kind::kThreadEnd},
    {Kind::kNote},
    {Kind::kReport},
    {Kind::kStart},
    {Kind::kStop},
    {Kind::kMemory},
    {Kind::kLost},
    {Kind::kEnd},
    {Kind::kFork},
};
// By the highest four bits of the others, from kAllocation on.
constexpr CodedKind kWithCall[] = {
    {Kind::kAllocation, true}, {Kind::kFree},
    {Kind::kUnknownFree},      {Kind::kRealloc, true},
    {Kind::kFree, true},       {Kind::kUnknownFree, true},
    {Kind::kUnmap, true},      {Kind::kInherited, true},
    {Kind::kAllocatedLeftOut},
};
constexpr uint8_t kFirstWithCall = static_cast<uint8_t>(EventCode::kAllocation);

CodedKind coded(uint8_t code) {
  if (code < kFirstWithCall) return kWithoutCall[code];
  const size_t index = (code >> 4) - 1u;
  return index < std::size(kWithCall) ? kWithCall[index] : CodedKind();
}

bool has_number(Kind kind) {
  return kind == Kind::kReport || kind == Kind::kMemory || kind == Kind::kLost ||
         kind == Kind::kFork || kind == Kind::kEnd;
}
bool has_text(Kind kind) { return kind == Kind::kReport || kind == Kind::kNote; }

constexpr uint64_t kUnit = 16;  // bytes

// What a block takes with its header, as glibc rounds it.
uint64_t units_of(uint64_t requested) { return std::max<uint64_t>((requested + 23) / kUnit, 2); }

}  // namespace

uint8_t code_of(const Event& event) {
  const auto with_call = [&](EventCode code) {
    return static_cast<uint8_t>(static_cast<uint8_t>(code) | event.call);
  };
  if (event.kind == Kind::kAllocation) return with_call(EventCode::kAllocation);
  if (event.kind == Kind::kFree && event.stack == 0) return with_call(EventCode::kFree);
  // Only of these are there two codes.
  const bool may_have_none =
      event.kind == Kind::kFree || event.kind == Kind::kUnknownFree || event.kind == Kind::kUnmap;
  const auto fits = [&](const CodedKind& one) {
    return one.kind == event.kind && (!may_have_none || one.has_stack == (event.stack != 0));
  };
  const auto* const without =
      std::find_if(std::begin(kWithoutCall) + 1, std::end(kWithoutCall), fits);
  if (without != std::end(kWithoutCall)) return static_cast<uint8_t>(without - kWithoutCall);
  const auto* const with = std::find_if(std::begin(kWithCall), std::end(kWithCall), fits);
  if (with == std::end(kWithCall)) return 0;
  return static_cast<uint8_t>((with - kWithCall + 1) << 4 | event.call);
}

void set_code(Event& event, uint8_t code) {
  event.kind = kind_of(code);
  if (code >= kFirstWithCall) {
    event.call = std::min<uint8_t>(code & 0xf, format::kEventCalls - 1);
  }
}

Kind kind_of(uint8_t code) { return coded(code).kind; }
bool has_stack(uint8_t code) { return coded(code).has_stack; }

bool aligns(uint8_t call) {
  static const auto kAligning = [] {
    std::array<bool, format::kEventCalls> found = {};
    for (uint8_t i = 0; i < found.size(); ++i) {
      const std::string_view name = format::kCallNames[i];
      found[i] = name == "memalign" || name == "posix_memalign" || name == "aligned_alloc" ||
                 name == "valloc" || name == "pvalloc";
    }
    return found;
  }();
  return call < kAligning.size() && kAligning[call];
}

bool reallocates(uint8_t call) {
  static constexpr auto kReallocating = [] {
    std::array<bool, format::kEventCalls> found = {};
    for (uint8_t i = 0; i < found.size(); ++i) {
      found[i] = std::string_view(format::kCallNames[i]).starts_with("realloc");
    }
    return found;
  }();
  return call < kReallocating.size() && kReallocating[call];
}

uint8_t alignment_of(const Event& event) {
  const int own = event.alignment != 0 ? event.alignment : std::countr_zero(event.address);
  return static_cast<uint8_t>(std::clamp<int>(own, kLeastAlignment, kMostAlignment));
}

void put_usable(Column& out, uint64_t requested, uint64_t usable) {
  out.put_signed(static_cast<int64_t>(usable - format::usual_usable_size(requested)));
}
uint64_t read_usable(ColumnReader& in, uint64_t requested) {
  const auto more = static_cast<uint64_t>(in.signed_number());
  return std::max(requested, format::usual_usable_size(requested) + more);
}

void put_more(Column& out, const Event& event) {
  if (has_number(event.kind)) out.put(event.number);
  if (has_text(event.kind)) out.put_text(event.text);
}
void read_more(ColumnReader& in, Event& event) {
  if (has_number(event.kind)) event.number = in.number();
  if (has_text(event.kind)) event.text = in.text();
}

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

// In units; 255 and more are one.
uint64_t BlockHistory::size_class(uint64_t requested) {
  constexpr uint64_t kLargest = 255;
  return requested >= kLargest * kUnit ? kLargest : units_of(requested);
}

uint64_t BlockHistory::number_of(uint64_t address, uint32_t thread, uint64_t requested) {
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

uint64_t BlockHistory::address_of(uint64_t number, uint32_t thread, uint64_t requested) {
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

void BlockHistory::allocate(uint64_t number, uint64_t address, uint32_t thread,
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
}

uint64_t BlockHistory::encode(uint64_t address, uint32_t thread, uint64_t requested) {
  const uint64_t number = number_of(address, thread, requested);
  allocate(number, address, thread, requested);
  return number;
}

uint64_t BlockHistory::decode(uint64_t number, uint64_t elsewhere, uint32_t thread,
                              uint64_t requested) {
  const uint64_t address = number == kElsewhere ? elsewhere : address_of(number, thread, requested);
  allocate(number, address, thread, requested);
  return address;
}

uint64_t BlockHistory::free(size_t block, uint32_t thread) {
  const Block& one = blocks_[block];
  freed_[list_of(thread, one.size_class)].push_back(one.address);
  Thread& state = state_of(thread);
  state.last_freed = one.address;
  state.last_class = one.size_class;
  return one.address;
}

void BlockHistory::free_elsewhere(uint64_t address, uint32_t thread) {
  Thread& state = state_of(thread);
  state.last_freed = address;
  state.last_class = 0;
}

}  // namespace mtrace::events
