#include <algorithm>
#include <utility>
#include <vector>

#include "format/event_log.h"
#include "model/events/block_addresses.h"
#include "model/events/event_code.h"
#include "model/events/event_columns.h"

namespace mtrace::events {
namespace {

class FullColumns : public EventColumns {
 public:
  void put(const Event& event, uint64_t steps) override {
    if (first_) last_steps_ = steps;
    first_ = false;
    const bool switches = event.thread != thread_;
    column(format::kCodeColumn).put_byte(code_of(event));
    column(format::kTimeColumn).put((steps - last_steps_) << 1 | (switches ? 1 : 0));
    if (switches) switch_to(event.thread);
    last_steps_ = steps;
    put_values(event);
  }

  void finish(Column& out) override {
    out.put_byte(static_cast<uint8_t>(format::EventForm::kFull));
    for (Column& one : columns_) {
      out.put_text(one.bytes());
      one.clear();
    }
    first_ = true;
    thread_ = 0;
    addresses_.assign(1, RecentAddresses());
    blocks_ = BlockNames();
  }

 private:
  Column& column(format::EventColumn which) { return columns_[which]; }
  Column& more() { return columns_[format::kMoreColumn]; }

  void switch_to(uint32_t thread) {
    column(format::kThreadColumn).put(thread);
    thread_ = thread;
    if (thread >= addresses_.size()) addresses_.resize(thread + size_t{1});
  }
  void address(uint64_t address) {
    column(format::kAddressColumn).put(addresses_[thread_].encode(address));
  }
  void freed(uint64_t address) {
    const uint64_t number = blocks_.free(address, thread_);
    column(format::kFreedColumn).put(number);
    if (number == BlockHistory::kNoBlock) this->address(address);
  }
  void moved_from(uint64_t address) {
    const bool last = blocks_.freed_last(address, thread_);
    column(format::kFreedColumn).put_byte(last ? 1 : 0);
    if (!last) this->address(address);
  }
  void allocated(const Event& event) {
    const uint64_t number = blocks_.allocate(event.address, thread_, event.requested);
    column(format::kAllocatedColumn).put(number);
    if (number == BlockHistory::kElsewhere) address(event.address);
    column(format::kSizeColumn).put(event.requested);
    put_usable(column(format::kUsableColumn), event.requested, event.usable);
    stack(event);
  }
  void stack(const Event& event) { column(format::kStackColumn).put(event.stack); }
  void put_values(const Event& event);

  bool first_ = true;
  uint64_t last_steps_ = 0;
  uint32_t thread_ = 0;
  std::vector<RecentAddresses> addresses_ = {RecentAddresses()};  // by thread
  BlockNames blocks_;
  Column columns_[format::kEventColumns];
};

void FullColumns::put_values(const Event& event) {
  switch (event.kind) {
    case Kind::kInherited:
      more().put((event.time - event.number) / format::kEventTimeStep);
      [[fallthrough]];
    case Kind::kAllocation:
      return allocated(event);
    case Kind::kRealloc:
      moved_from(event.old_address);
      return allocated(event);
    case Kind::kFree:
      freed(event.address);
      break;
    case Kind::kReallocBegin:
      return freed(event.address);
    case Kind::kUnknownFree:
    case Kind::kReallocFailed:
      address(event.address);
      break;
    case Kind::kMap:
      address(event.address);
      column(format::kSizeColumn).put(event.requested);
      return stack(event);
    case Kind::kUnmap:
      address(event.address);
      column(format::kSizeColumn).put(event.requested);
      break;
    case Kind::kRemap:
      address(event.old_address);
      address(event.address);
      column(format::kSizeColumn).put(event.old_size);
      column(format::kSizeColumn).put(event.requested);
      return stack(event);
    default:
      return put_more(more(), event);
  }
  if (event.stack != 0) stack(event);
}

class FullReader : public EventColumnsReader {
 public:
  FullReader(FileNumbers& numbers, unsigned version)
      : numbers_(numbers), first_version_(version == 1) {}

  void begin(ColumnReader& in, uint64_t steps) override {
    steps_ = steps;
    for (size_t i = 0; i < std::size(columns_); ++i) {
      const bool there = i < format::kFirstEventColumns || !first_version_;
      columns_[i] = ColumnReader(there ? in.text() : std::string_view());
    }
    thread_ = 0;
    addresses_.assign(1, RecentAddresses());
    blocks_ = BlockHistory();
  }

  void next(Event& event, uint64_t& steps) override;

 private:
  ColumnReader& column(format::EventColumn which) { return columns_[which]; }
  uint64_t address() { return addresses_[thread_].decode(column(format::kAddressColumn).number()); }
  uint32_t stack() {
    return numbers_.stack(
        static_cast<uint32_t>(column(format::kStackColumn).number_up_to(FileNumbers::kMost)));
  }
  void switch_thread() {
    thread_ = numbers_.thread(
        static_cast<uint32_t>(column(format::kThreadColumn).number_up_to(FileNumbers::kMost)));
    if (thread_ >= addresses_.size()) addresses_.resize(thread_ + size_t{1});
  }
  uint64_t freed();
  uint64_t moved_from();
  void read_block(Event& event);

  FileNumbers& numbers_;
  bool first_version_;
  ColumnReader columns_[format::kEventColumns];
  std::vector<RecentAddresses> addresses_;  // by thread
  BlockHistory blocks_;                     // of the chunk
  uint64_t steps_ = 0;
  uint32_t thread_ = 0;
};

uint64_t FullReader::freed() {
  const uint64_t number = first_version_ ? 0 : column(format::kFreedColumn).number();
  if (number != BlockHistory::kNoBlock) return blocks_.free(blocks_.freed_block(number), thread_);
  const uint64_t found = address();
  if (!first_version_) blocks_.free_elsewhere(found, thread_);
  return found;
}

uint64_t FullReader::moved_from() {
  const bool last = !first_version_ && column(format::kFreedColumn).number_up_to(1) == 1;
  return last ? blocks_.last_freed(thread_) : address();
}

void FullReader::read_block(Event& event) {
  event.requested = column(format::kSizeColumn).number();
  event.usable = read_usable(column(format::kUsableColumn), event.requested);
  event.stack = stack();
  const uint64_t number = first_version_ ? 0 : column(format::kAllocatedColumn).number();
  event.address = number == BlockHistory::kElsewhere
                      ? address()
                      : blocks_.take_address(number, thread_, event.requested);
  if (!first_version_) blocks_.allocate(number, event.address, thread_, event.requested);
}

void FullReader::next(Event& event, uint64_t& steps) {
  const uint8_t code = column(format::kCodeColumn).byte();
  const uint64_t time = column(format::kTimeColumn).number();
  steps = steps_ = std::min(steps_ + (time >> 1), kMostSteps);
  if ((time & 1) != 0) switch_thread();
  event.thread = thread_;
  set_code(event, code);
  ColumnReader& more = column(format::kMoreColumn);
  switch (event.kind) {
    case Kind::kInherited:
      event.number = more.number();
      [[fallthrough]];
    case Kind::kAllocation:
      return read_block(event);
    case Kind::kRealloc:
      event.old_address = moved_from();
      return read_block(event);
    case Kind::kFree:
    case Kind::kReallocBegin:
      event.address = freed();
      break;
    case Kind::kUnknownFree:
    case Kind::kReallocFailed:
      event.address = address();
      break;
    case Kind::kMap:
    case Kind::kUnmap:
      event.address = address();
      event.requested = column(format::kSizeColumn).number();
      break;
    case Kind::kRemap:
      event.old_address = address();
      event.address = address();
      event.old_size = column(format::kSizeColumn).number();
      event.requested = column(format::kSizeColumn).number();
      break;
    default:
      return read_more(more, event);
  }
  if (has_stack(code)) event.stack = stack();
}

}  // namespace

std::unique_ptr<EventColumns> make_full_columns() { return std::make_unique<FullColumns>(); }

std::unique_ptr<EventColumnsReader> make_full_reader(FileNumbers& numbers, unsigned version) {
  return std::make_unique<FullReader>(numbers, version);
}

}  // namespace mtrace::events
