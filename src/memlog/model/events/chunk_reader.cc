#include "model/events/chunk_reader.h"

#include <algorithm>
#include <iterator>

namespace mtrace::events {
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
