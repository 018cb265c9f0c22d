#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "format/event_log.h"
#include "model/events/compact_columns.h"
#include "model/events/event_code.h"
#include "model/events/event_columns.h"

namespace mtrace::events {
namespace {

using format::CompactColumn;

constexpr uint64_t kMostBirths = uint64_t{1} << 48;

class CompactEvents : public CompactReader {
 public:
  explicit CompactEvents(FileNumbers& numbers) : numbers_(numbers) {}

  void begin(ColumnReader& in, uint64_t steps) override;
  void next(Event& event, uint64_t& steps) override;
  uint64_t address_of(uint64_t numbered) const override {
    const auto found = told_.find(block_number(numbered));
    return found != told_.end() ? found->second : 0;
  }

 private:
  // Events until something happens, from a column.
  struct Until {
    uint64_t left = 0;
    bool any = false;

    void read(ColumnReader& column) {
      any = !column.empty();
      left = any ? column.number() : 0;
    }
    bool is_now() { return any && left == 0; }
    void pass() { left -= left != 0 ? 1 : 0; }
  };

  ColumnReader& column(CompactColumn which) { return columns_[which]; }
  uint64_t address() { return addresses_.decode(column(format::kSingleAddresses).number()); }
  uint64_t birth() {
    const uint64_t number = births_.decode(column(format::kBirths).signed_number());
    if (number > kMostBirths) throw DamagedChunk();
    return numbered_address(number);
  }
  void read_entry();
  uint64_t moved(uint8_t order);
  uint64_t forget_moving(uint64_t address);
  void read_begin(Event& event, const EventEntry& entry);
  void read_end(Event& event, const EventEntry& entry);
  void read_single(Event& event, uint64_t& steps);
  void read_told();

  FileNumbers& numbers_;
  ColumnReader columns_[format::kCompactColumns];
  std::vector<ColumnReader> symbols_;  // by thread
  std::vector<EventEntry> entries_;
  BlockOrder order_;
  Births births_;
  RecentAddresses addresses_;
  uint64_t first_birth_ = 1;
  uint64_t births_of_chunk_ = 0;
  std::vector<std::vector<uint64_t>> moving_;     // addresses, by thread
  absl::flat_hash_map<uint64_t, uint64_t> told_;  // addresses, by the numbers of blocks
  uint64_t tick_ = 0;
  uint64_t steps_ = 0;  // of the next event
  Until next_tick_, next_switch_;
  std::vector<uint32_t> threads_;  // of the log, by their numbers in the chunk
  size_t slot_ = 0;                // of the present one
  uint32_t newest_stack_ = 0;
};

void CompactEvents::begin(ColumnReader& in, uint64_t steps) {
  tick_ = steps / kStepsOfTick;
  steps_ = std::max(steps_, tick_ * kStepsOfTick);
  first_birth_ = in.number_up_to(kMostBirths);
  symbols_.clear();
  for (uint64_t threads =
           in.number_up_to(std::min<uint64_t>(in.left(), format::kMostChunkEvents + 1));
       threads != 0; --threads) {
    symbols_.emplace_back(in.text());
  }
  for (ColumnReader& one : columns_) one = ColumnReader(in.text());
  entries_.clear();
  order_ = BlockOrder();
  births_ = Births();
  addresses_ = RecentAddresses();
  births_of_chunk_ = 0;
  moving_.assign(symbols_.size(), {});
  next_tick_.read(column(format::kTicks));
  next_switch_.read(column(format::kSwitches));
  threads_.assign(1, 0);
  slot_ = newest_stack_ = 0;
}

void CompactEvents::next(Event& event, uint64_t& steps) {
  if (next_tick_.is_now()) {
    tick_ = std::min(tick_ + column(format::kTicks).number_up_to(kMostSteps),
                     kMostSteps / kStepsOfTick);
    steps_ = std::max(steps_, tick_ * kStepsOfTick);
    next_tick_.read(column(format::kTicks));
  }
  if (next_switch_.is_now()) {
    slot_ = column(format::kSwitches).number_up_to(threads_.size());
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

void CompactEvents::read_entry() {
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

void CompactEvents::read_end(Event& event, const EventEntry& entry) {
  if (entry.order == format::kOrderBirth) {
    event.address = birth();
  } else if (entry.order == format::kOrderAddress) {
    event.address = address();
  } else {
    uint64_t distance = entry.order;
    if (distance == format::kOrderFar) {
      distance += column(format::kFarLow).byte();
      distance += column(format::kFarHigh).number_up_to(UINT32_MAX) << 8;
    }
    event.address =
        numbered_address(first_birth_ + order_.remove_at(distance, static_cast<uint32_t>(slot_)));
  }
  if (event.kind == Kind::kReallocBegin) moving_[slot_].push_back(event.address);
  if (event.kind == Kind::kFree) forget_moving(event.address);  // realloc(block, 0)
}

// It is moved no longer, or not in this chunk. Returns it.
uint64_t CompactEvents::forget_moving(uint64_t address) {
  std::vector<uint64_t>& moving = moving_[slot_];
  const auto found = std::find(moving.rbegin(), moving.rend(), address);
  if (found != moving.rend()) moving.erase(std::next(found).base());
  return address;
}

uint64_t CompactEvents::moved(uint8_t order) {
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

void CompactEvents::read_begin(Event& event, const EventEntry& entry) {
  if (event.kind == Kind::kRealloc) event.old_address = moved(entry.order);
  if (event.kind == Kind::kInherited) event.number = column(format::kSingleMore).number();
  event.requested = entry.requested;
  event.usable = entry.usable;
  event.alignment = entry.place >> 2;
  const uint8_t place = entry.place & 3;
  if (place == format::kPlaceTaken) {
    event.address = birth();
    return;
  }
  const uint64_t number = first_birth_ + births_of_chunk_++;
  order_.add();
  event.address = numbered_address(number);
  if (place == format::kPlaceTold) told_[number] = address();
}

void CompactEvents::read_single(Event& event, uint64_t& steps) {
  const uint8_t code = column(format::kSingleCodes).byte();
  set_code(event, code);
  if (has_stack(code)) {
    event.stack = numbers_.stack(
        static_cast<uint32_t>(column(format::kSingleStacks).number_up_to(FileNumbers::kMost)));
  }
  ColumnReader& more = column(format::kSingleMore);
  ColumnReader& sizes = column(format::kSingleSizes);
  if (is_mark(event.kind)) {
    steps = std::max(steps_, tick_ * kStepsOfTick + more.number_up_to(kStepsOfTick));
    steps_ = steps + 1;
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
      if (event.kind == Kind::kFork) read_told();
  }
}

void CompactEvents::read_told() {
  for (uint64_t count = column(format::kSingleMore).number(); count != 0; --count) {
    const uint64_t number = block_number(birth());
    if (const uint64_t at = address(); at != 0) told_[number] = at;
  }
}

}  // namespace

std::unique_ptr<CompactReader> make_compact_reader(FileNumbers& numbers) {
  return std::make_unique<CompactEvents>(numbers);
}

}  // namespace mtrace::events
