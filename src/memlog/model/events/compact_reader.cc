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
  uint32_t thread_ = 0;  // as in the file; the next as in the log
  uint32_t log_thread_ = 0;
  uint32_t newest_stack_ = 0;
};

void CompactEvents::begin(ColumnReader& in, uint64_t steps) {
  tick_ = steps / kStepsOfTick;
  steps_ = std::max(steps_, tick_ * kStepsOfTick);
  first_birth_ = in.number_up_to(kMostBirths);
  symbols_.clear();
  for (uint64_t threads = in.number_up_to(in.left()); threads != 0; --threads) {
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
  thread_ = log_thread_ = newest_stack_ = 0;
}

void CompactEvents::next(Event& event, uint64_t& steps) {
  if (next_tick_.is_now()) {
    tick_ = std::min(tick_ + column(format::kTicks).number_up_to(kMostSteps),
                     kMostSteps / kStepsOfTick);
    steps_ = std::max(steps_, tick_ * kStepsOfTick);
    next_tick_.read(column(format::kTicks));
  }
  if (next_switch_.is_now()) {
    thread_ = static_cast<uint32_t>(column(format::kSwitches).number_up_to(FileNumbers::kMost));
    log_thread_ = numbers_.thread(thread_);
    next_switch_.read(column(format::kSwitches));
  }
  next_tick_.pass();
  next_switch_.pass();
  if (thread_ >= symbols_.size()) throw DamagedChunk();
  event.thread = log_thread_;
  steps = steps_;
  const uint64_t symbol = symbols_[thread_].symbol();
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
    const auto more = static_cast<uint64_t>(column(format::kEntryUsable).signed_number());
    one.usable = std::max(one.requested, format::usual_usable_size(one.requested) + more);
  }
  entries_.push_back(one);
}

void CompactEvents::read_end(Event& event, const EventEntry& entry) {
  if (entry.order == format::kOrderBirth) {
    event.address = birth();
    if (event.kind == Kind::kFree) std::erase(moving_[thread_], event.address);
  } else if (entry.order == format::kOrderAddress) {
    event.address = address();
  } else {
    uint64_t distance = entry.order;
    if (distance == format::kOrderFar) {
      distance += column(format::kFarLow).byte();
      distance += column(format::kFarHigh).number_up_to(UINT32_MAX) << 8;
    }
    event.address = numbered_address(first_birth_ + order_.remove_at(distance, thread_));
  }
  if (event.kind == Kind::kReallocBegin) moving_[thread_].push_back(event.address);
}

uint64_t CompactEvents::moved(uint8_t order) {
  if (order == format::kOrderBirth) return birth();
  if (order == format::kOrderAddress) return address();
  std::vector<uint64_t>& moving = moving_[thread_];
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
    case Kind::kReport:
      event.number = more.number();
      event.text = more.text();
      return;
    case Kind::kNote:
      event.text = more.text();
      return;
    case Kind::kFork:
      event.number = more.number();
      return read_told();
    case Kind::kMemory:
    case Kind::kLost:
    case Kind::kEnd:
      event.number = more.number();
      return;
    default:  // has no values
      return;
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
