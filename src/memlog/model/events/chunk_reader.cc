#include "model/events/chunk_reader.h"

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

namespace {

constexpr uint64_t kMostBirths = uint64_t{1} << 48;

}  // namespace

void ChunkReader::begin(ColumnReader& in, format::EventForm form, uint64_t steps) {
  has_addresses_ = has_addresses(form);
  steps_of_tick_ = steps_of_tick(form);
  tick_ = steps / steps_of_tick_;
  steps_ = std::max(steps_, tick_ * steps_of_tick_);
  first_birth_ = in.number_up_to(kMostBirths);
  symbols_.clear();
  for (uint64_t threads =
           in.number_up_to(std::min<uint64_t>(in.left(), format::kMostChunkEvents + 1));
       threads != 0; --threads) {
    symbols_.emplace_back(in.text());
  }
  for (size_t i = 0; i < std::size(columns_); ++i) {
    const bool there = has_addresses_ || i < format::kCompactColumns;
    columns_[i] = ColumnReader(there ? in.text() : std::string_view());
  }
  entries_.clear();
  order_ = BlockOrder();
  history_ = BlockHistory();
  births_ = Births();
  addresses_ = RecentAddresses();
  births_of_chunk_ = 0;
  moving_.assign(symbols_.size(), {});
  next_tick_ = Until();
  if (!has_addresses_) next_tick_.read(column(format::kTicks));
  next_switch_.read(column(format::kSwitches));
  threads_.assign(1, 0);
  slot_ = newest_stack_ = 0;
}

void ChunkReader::next(Event& event, uint64_t& steps) {
  if (has_addresses_ || next_tick_.is_now()) {
    tick_ = std::min(tick_ + column(format::kTicks).number_up_to(kMostSteps),
                     kMostSteps / steps_of_tick_);
    steps_ = std::max(steps_, tick_ * steps_of_tick_);
    if (!has_addresses_) next_tick_.read(column(format::kTicks));
  }
  if (next_switch_.is_now()) {
    slot_ = static_cast<uint32_t>(column(format::kSwitches).number_up_to(threads_.size()));
    if (slot_ == threads_.size()) {
      threads_.push_back(numbers_.thread(
          static_cast<uint32_t>(column(format::kSwitches).number_up_to(FileNumbers::kMost))));
    }
    next_switch_.read(column(format::kSwitches));
  }
  next_tick_.pass();
  next_switch_.pass();
  if (slot_ >= symbols_.size()) throw DamagedChunk();
  event.thread = threads_[slot_];
  steps = steps_;
  const uint64_t symbol = symbols_[slot_].symbol();
  if (symbol == 0) return read_single(event, steps);
  if (symbol == entries_.size() + 1) read_entry();
  if (symbol > entries_.size()) throw DamagedChunk();
  const EventEntry& one = entries_[symbol - 1];
  set_code(event, one.code);
  event.stack = one.stack;
  begins_block(event.kind) ? read_begin(event, one) : read_end(event, one);
}

void ChunkReader::read_entry() {
  EventEntry one;
  one.code = column(format::kEntryCodes).byte();
  const Kind kind = kind_of(one.code);
  if (!begins_block(kind) && !ends_block(kind)) throw DamagedChunk();
  if (has_stack(one.code)) {
    const int64_t back = column(format::kEntryStacks).signed_number();
    const uint64_t number = uint64_t{newest_stack_} + 1 - static_cast<uint64_t>(back);
    if (number > FileNumbers::kMost) throw DamagedChunk();
    newest_stack_ = std::max(newest_stack_, static_cast<uint32_t>(number));
    one.stack = numbers_.stack(static_cast<uint32_t>(number));
  }
  if (kind == Kind::kRealloc || ends_block(kind)) one.order = column(format::kEntryOrders).byte();
  if (begins_block(kind)) {
    one.place = column(format::kEntryPlaces).byte();
    one.requested = column(format::kEntrySizes).number();
    one.usable = read_usable(column(format::kEntryUsable), one.requested);
  }
  entries_.push_back(one);
}

uint64_t ChunkReader::birth() {
  const uint64_t number = births_.decode(column(format::kBirths).signed_number());
  if (number > kMostBirths) throw DamagedChunk();
  return numbered_address(number);
}

void ChunkReader::read_end(Event& event, const EventEntry& entry) {
  if (entry.order == format::kOrderBirth) {
    event.address = birth();
  } else if (entry.order == format::kOrderAddress) {
    event.address = address();
    if (has_addresses_) history_.free_elsewhere(event.address, slot_);
  } else {
    uint64_t distance = entry.order;
    if (distance == format::kOrderFar) {
      distance += column(format::kFarLow).byte();
      distance += column(format::kFarHigh).number_up_to(UINT32_MAX) << 8;
    }
    const size_t block = order_.remove_at(distance, slot_);
    event.address =
        has_addresses_ ? history_.free(block, slot_) : numbered_address(first_birth_ + block);
  }
  if (event.kind == Kind::kReallocBegin) moving_[slot_].push_back(event.address);
  if (event.kind == Kind::kFree) forget_moving(event.address);  // realloc(block, 0)
}

// It is moved no longer, or not in this chunk. Returns it.
uint64_t ChunkReader::forget_moving(uint64_t address) {
  std::vector<uint64_t>& moving = moving_[slot_];
  const auto found = std::find(moving.rbegin(), moving.rend(), address);
  if (found != moving.rend()) moving.erase(std::next(found).base());
  return address;
}

uint64_t ChunkReader::moved(uint8_t order) {
  if (order >= format::kOrderFar) {
    return forget_moving(order == format::kOrderBirth ? birth() : address());
  }
  std::vector<uint64_t>& moving = moving_[slot_];
  if (order >= moving.size()) throw DamagedChunk();
  const auto at = moving.end() - 1 - order;
  const uint64_t found = *at;
  moving.erase(at);
  return found;
}

void ChunkReader::read_begin(Event& event, const EventEntry& entry) {
  if (event.kind == Kind::kRealloc) event.old_address = moved(entry.order);
  if (event.kind == Kind::kInherited) event.number = column(format::kSingleMore).number();
  event.requested = entry.requested;
  event.usable = entry.usable;
  event.alignment = entry.place >> 2;
  event.address = read_place(entry.place & 3, entry.requested);
}

// Returns the address of a block that begins, or what stands for it.
uint64_t ChunkReader::read_place(uint8_t place, uint64_t requested) {
  if (place == format::kPlaceTaken) return birth();
  order_.add();
  if (has_addresses_) {
    const uint64_t number = column(format::kAddresses).number();
    const uint64_t elsewhere = number == BlockHistory::kElsewhere ? address() : 0;
    return history_.decode(number, elsewhere, slot_, requested);
  }
  const uint64_t number = first_birth_ + births_of_chunk_++;
  if (place == format::kPlaceTold) told_[number] = address();
  return numbered_address(number);
}

void ChunkReader::read_single(Event& event, uint64_t& steps) {
  const uint8_t code = column(format::kSingleCodes).byte();
  set_code(event, code);
  if (has_stack(code)) {
    event.stack = numbers_.stack(
        static_cast<uint32_t>(column(format::kSingleStacks).number_up_to(FileNumbers::kMost)));
  }
  ColumnReader& more = column(format::kSingleMore);
  ColumnReader& sizes = column(format::kSingleSizes);
  if (is_mark(event.kind)) {
    steps = std::max(steps_, tick_ * steps_of_tick_ + more.number_up_to(steps_of_tick_));
    if (steps_of_tick_ > 1) steps_ = steps + 1;
  }
  switch (event.kind) {
    case Kind::kUnknownFree:
      event.address = address();
      return;
    case Kind::kReallocFailed:
      event.address = moved(more.byte());
      return;
    case Kind::kRemap:
      event.old_address = address();
      event.old_size = sizes.number();
      [[fallthrough]];
    case Kind::kMap:
    case Kind::kUnmap:
      event.address = address();
      event.requested = sizes.number();
      return;
    default:
      read_more(more, event);
      if (event.kind == Kind::kFork && !has_addresses_) read_told();
  }
}

void ChunkReader::read_told() {
  for (uint64_t count = column(format::kSingleMore).number(); count != 0; --count) {
    const uint64_t number = block_number(birth());
    if (const uint64_t at = address(); at != 0) told_[number] = at;
  }
}

}  // namespace mtrace::events
