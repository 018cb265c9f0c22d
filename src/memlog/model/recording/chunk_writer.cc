#include "model/recording/chunk_writer.h"

#include "model/events/chunk_reader.h"
#include "model/events/live_blocks.h"

namespace mtrace::events {
namespace {

constexpr uint64_t kStepsOfTick = format::kEventTick / format::kEventTimeStep;
constexpr size_t kMostTold = 8'000'000;  // addresses at a fork; the rest at the next

}  // namespace

using format::EventColumn;

// Writes the events of chunks.
class ChunkWriter::Events {
 public:
  Events(format::EventForm form, AddressOf address_of)
      : form_(form), has_addresses_(has_addresses(form)), address_of_(std::move(address_of)) {}

  void put(const Event& event, uint64_t steps);
  // Appends the events to a chunk. The next chunk begins.
  void finish(Column& out);

 private:
  // A block's number; 0: none. `returned`: its realloc failed, so the order has it no more.
  struct Block {
    uint64_t birth : 63 = 0;
    uint64_t returned : 1 = 0;
  };
  struct Moving {
    uint64_t address;
    uint64_t birth;
    bool in_chunk;  // its realloc began in this chunk
  };

  Column& column(EventColumn which) { return columns_[which]; }
  void birth(uint64_t number) { column(format::kBirths).put_signed(births_.encode(number)); }
  void address(uint64_t address) {
    column(format::kSingleAddresses).put(addresses_.encode(address));
  }
  void put_symbol(const EventEntry& entry);
  void far(uint64_t distance) {
    column(format::kFarLow).put_byte(static_cast<uint8_t>(distance));
    column(format::kFarHigh).put(distance >> 8);
  }
  // Of a block that has no distance.
  uint8_t far_order(uint64_t birth) const {
    return birth != 0 && !has_addresses_ ? format::kOrderBirth : format::kOrderAddress;
  }
  Block take_block(uint64_t address);
  void put_single(const Event& event, uint64_t steps);
  void put_begin(const Event& event, EventEntry entry);
  void put_end(const Event& event, EventEntry entry);
  Block take_moved(const Event& event);
  uint8_t take_moving(const Event& event, uint64_t old, uint64_t* birth);
  void tell_addresses();
  bool forks(const Event& event, uint64_t steps);

  const format::EventForm form_;
  const bool has_addresses_;
  AddressOf address_of_;
  uint64_t count_ = 0;  // events of the chunk
  uint64_t tick_ = 0;
  uint64_t tick_count_ = 0;  // `count_` at the last tick, and at the last switch of threads
  uint64_t switch_count_ = 0;
  uint32_t thread_ = 0;
  uint32_t slot_ = 0;  // its number in the chunk
  uint32_t newest_stack_ = 0;
  uint64_t births_of_log_ = 0;
  uint64_t first_birth_ = 1;  // of the chunk
  BlockOrder order_;
  BlockHistory history_;
  Births births_;
  RecentAddresses addresses_;
  // Live blocks, by address: since the last fork, or of the chunk if the log has addresses.
  absl::flat_hash_map<uint64_t, Block> fresh_;
  absl::flat_hash_map<uint64_t, Block> told_;                  // those whose addresses the log has
  absl::flat_hash_map<uint32_t, std::vector<Moving>> moving_;  // by thread
  absl::flat_hash_map<uint32_t, uint64_t> forking_;            // threads, and since when
  absl::flat_hash_map<EventEntry, uint32_t> entries_;
  absl::flat_hash_map<uint32_t, uint32_t> slots_ = {{0, 0}};  // of threads
  std::vector<Column> symbols_ = std::vector<Column>(1);      // by slot
  Column columns_[format::kEventColumns];
};

void ChunkWriter::Events::put(const Event& event, uint64_t steps) {
  const uint64_t tick = has_addresses_ ? steps : steps / kStepsOfTick;
  if (count_ == 0) tick_ = tick;
  if (has_addresses_) {  // hardly an event has the tick of the one before
    column(format::kTicks).put(tick - std::exchange(tick_, tick));
  } else if (tick != tick_) {
    column(format::kTicks).put(count_ - std::exchange(tick_count_, count_));
    column(format::kTicks).put(tick - std::exchange(tick_, tick));
  }
  if (event.thread != thread_) {
    thread_ = event.thread;
    column(format::kSwitches).put(count_ - std::exchange(switch_count_, count_));
    const auto [slot, fresh] = slots_.try_emplace(thread_, static_cast<uint32_t>(symbols_.size()));
    slot_ = slot->second;
    column(format::kSwitches).put(slot_);
    if (fresh) {
      column(format::kSwitches).put(thread_);
      symbols_.emplace_back();
    }
  }
  ++count_;
  EventEntry entry;
  entry.code = code_of(event);
  entry.stack = event.stack;
  if (begins_block(event.kind)) {
    const bool told = has_addresses_ || forks(event, steps);
    entry.place = told ? format::kPlaceTold : format::kPlaceNumbered;
    put_begin(event, entry);
  } else {
    // Those without a thread are the writer's own, or the fork is of a thread without a number.
    if (!forking_.empty() && !is_of_writer(event.kind)) forking_.erase(event.thread);
    ends_block(event.kind) ? put_end(event, entry) : put_single(event, steps);
  }
  if (event.kind == Kind::kFork && !has_addresses_) forking_[event.thread] = steps;
}

// Whether some thread is forking: what others allocate meanwhile, the child may have. Its next
// event tells that the fork is over.
bool ChunkWriter::Events::forks(const Event& event, uint64_t steps) {
  if (forking_.empty()) return false;
  forking_.erase(event.thread);
  absl::erase_if(forking_, [&](const auto& one) {
    return steps > one.second + kLongestFork / format::kEventTimeStep;
  });
  return !forking_.empty();
}

void ChunkWriter::Events::put_symbol(const EventEntry& entry) {
  const auto [at, fresh] = entries_.try_emplace(entry, static_cast<uint32_t>(entries_.size() + 1));
  symbols_[slot_].put_symbol(at->second);
  if (!fresh) return;
  column(format::kEntryCodes).put_byte(entry.code);
  const Kind kind = kind_of(entry.code);
  if (has_stack(entry.code)) {
    column(format::kEntryStacks).put_signed(int64_t{newest_stack_} + 1 - int64_t{entry.stack});
    newest_stack_ = std::max(newest_stack_, entry.stack);
  }
  if (kind == Kind::kRealloc || ends_block(kind))
    column(format::kEntryOrders).put_byte(entry.order);
  if (!begins_block(kind)) return;
  column(format::kEntryPlaces).put_byte(entry.place);
  column(format::kEntrySizes).put(entry.requested);
  put_usable(column(format::kEntryUsable), entry.requested, entry.usable);
}

// The block that lives there, which does no longer. Its birth is 0: none.
ChunkWriter::Events::Block ChunkWriter::Events::take_block(uint64_t address) {
  for (auto* blocks : {&fresh_, &told_}) {
    if (const auto found = blocks->find(address); found != blocks->end()) {
      const Block block = found->second;
      blocks->erase(found);
      return block;
    }
  }
  return {};
}

void ChunkWriter::Events::put_end(const Event& event, EventEntry entry) {
  // After realloc(block, 0), another may live there.
  const bool moves = event.kind == Kind::kFree && reallocates(event.call);
  Block block = moves ? take_moved(event) : take_block(event.address);
  if (block.birth == 0 && event.kind == Kind::kFree) {
    block = moves ? take_block(event.address) : take_moved(event);
  }
  if (event.kind == Kind::kReallocBegin) {
    std::vector<Moving>& moving = moving_[thread_];
    if (moving.size() == kMostMoves) moving.erase(moving.begin());  // its end was lost
    moving.push_back({event.address, block.birth, true});
  }
  if (block.birth >= first_birth_ && !block.returned) {
    const uint64_t item = block.birth - first_birth_;
    const uint64_t distance = order_.remove(item, slot_);
    if (has_addresses_) history_.free(item, slot_);
    entry.order = static_cast<uint8_t>(std::min<uint64_t>(distance, format::kOrderFar));
    put_symbol(entry);
    if (distance >= format::kOrderFar) far(distance - format::kOrderFar);
    return;
  }
  entry.order = far_order(block.birth);
  put_symbol(entry);
  if (entry.order == format::kOrderBirth) return birth(block.birth);
  address(event.address);
  if (has_addresses_) history_.free_elsewhere(event.address, slot_);
}

// The block that the thread's realloc has freed. Its birth is 0: none.
ChunkWriter::Events::Block ChunkWriter::Events::take_moved(const Event& event) {
  uint64_t birth = 0;
  take_moving(event, event.address, &birth);
  return {birth, 1};
}

// Which of the blocks that the thread moves is that at `old`: returns the order, and stores the
// number. What the order needs beyond itself is still to be written.
uint8_t ChunkWriter::Events::take_moving(const Event& event, uint64_t old, uint64_t* birth) {
  *birth = 0;
  const auto of_thread = moving_.find(event.thread);
  if (of_thread == moving_.end()) return format::kOrderAddress;
  std::vector<Moving>& moving = of_thread->second;
  const auto found = std::find_if(moving.rbegin(), moving.rend(),
                                  [&](const Moving& one) { return one.address == old; });
  if (found == moving.rend()) return format::kOrderAddress;
  *birth = found->birth;
  const auto later = found - moving.rbegin();
  const bool near = found->in_chunk && later < format::kOrderFar;
  moving.erase(std::next(found).base());
  if (moving.empty()) moving_.erase(of_thread);
  if (near) return static_cast<uint8_t>(later);
  return far_order(*birth);
}

void ChunkWriter::Events::put_begin(const Event& event, EventEntry entry) {
  uint64_t old = 0;
  if (event.kind == Kind::kRealloc) entry.order = take_moving(event, event.old_address, &old);
  const Block there = take_block(event.address);
  const bool takes = there.birth != 0 && !has_addresses_;  // the number of one whose free was lost
  if (takes) entry.place = format::kPlaceTaken;
  entry.requested = event.requested;
  entry.usable = event.usable;
  if (!has_addresses_ && aligns(event.call)) {
    entry.place |= static_cast<uint8_t>(alignment_of(event) << 2);
  }
  put_symbol(entry);
  if (event.kind == Kind::kInherited) {
    column(format::kSingleMore).put((event.time - event.number) / format::kEventTimeStep);
  }
  if (entry.order == format::kOrderBirth) birth(old);
  if (entry.order == format::kOrderAddress) address(event.old_address);
  if (takes) {
    birth(there.birth);
    fresh_[event.address] = there;
    return;
  }
  order_.add();
  const Block fresh = {++births_of_log_, 0};
  if (has_addresses_) {
    fresh_[event.address] = fresh;
    const uint64_t number = history_.encode(event.address, slot_, event.requested);
    column(format::kAddresses).put(number);
    if (number == BlockHistory::kElsewhere) address(event.address);
    return;
  }
  const bool told = (entry.place & 3) == format::kPlaceTold;
  (told ? told_ : fresh_)[event.address] = fresh;
  if (told) address(address_of_(event.address));
}

void ChunkWriter::Events::put_single(const Event& event, uint64_t steps) {
  symbols_[slot_].put_symbol(0);
  const uint8_t code = code_of(event);
  column(format::kSingleCodes).put_byte(code);
  if (has_stack(code)) column(format::kSingleStacks).put(event.stack);
  Column& more = column(format::kSingleMore);
  if (is_mark(event.kind)) more.put(has_addresses_ ? 0 : steps - tick_ * kStepsOfTick);
  switch (event.kind) {
    case Kind::kUnknownFree:
      return address(event.address);
    case Kind::kReallocFailed: {
      uint64_t block = 0;
      const uint8_t order = take_moving(event, event.address, &block);
      more.put_byte(order);
      if (order == format::kOrderBirth) birth(block);
      if (order == format::kOrderAddress) address(event.address);
      take_block(event.address);
      if (block != 0 && !has_addresses_) fresh_[event.address] = {block, 1};
      return;
    }
    case Kind::kRemap:
      address(event.old_address);
      column(format::kSingleSizes).put(event.old_size);
      [[fallthrough]];
    case Kind::kMap:
    case Kind::kUnmap:
      address(event.address);
      return column(format::kSingleSizes).put(event.requested);
    default:
      put_more(more, event);
      if (event.kind == Kind::kFork && !has_addresses_) tell_addresses();
  }
}

// At a fork: of blocks whose addresses the log does not have yet, for the log of the child.
void ChunkWriter::Events::tell_addresses() {
  std::vector<std::pair<uint64_t, uint64_t>> found;  // birth, address
  for (auto at = fresh_.begin(); at != fresh_.end() && found.size() < kMostTold;) {
    found.emplace_back(uint64_t{at->second.birth}, address_of_(at->first));
    told_.insert(*at);
    fresh_.erase(at++);
  }
  for (const auto& [thread, moving] : moving_) {
    for (const Moving& one : moving) {
      if (one.birth != 0) found.emplace_back(one.birth, address_of_(one.address));
    }
  }
  std::sort(found.begin(), found.end());
  column(format::kSingleMore).put(found.size());
  for (const auto& [number, at] : found) {
    birth(number);
    address(at);
  }
}

void ChunkWriter::Events::finish(Column& out) {
  out.put_byte(static_cast<uint8_t>(form_));
  out.put(first_birth_);
  out.put(symbols_.size());
  for (Column& symbols : symbols_) out.put_text(symbols.bytes());
  for (size_t i = 0; i < (has_addresses_ ? format::kEventColumns : format::kCompactColumns); ++i) {
    out.put_text(columns_[i].bytes());
    columns_[i].clear();
  }
  symbols_.assign(1, Column());
  slots_ = {{0, 0}};
  count_ = tick_count_ = switch_count_ = 0;
  thread_ = slot_ = newest_stack_ = 0;
  order_ = BlockOrder();
  births_ = Births();
  addresses_ = RecentAddresses();
  entries_.clear();
  for (auto& [thread, moving] : moving_) {
    for (Moving& one : moving) one.in_chunk = false;
  }
  if (has_addresses_) {  // blocks of earlier chunks have no numbers
    fresh_.clear();
    history_ = BlockHistory();
    births_of_log_ = 0;
  }
  first_birth_ = births_of_log_ + 1;
}

ChunkWriter::ChunkWriter(format::EventForm form, size_t most_events, AddressOf address_of)
    : most_events_(most_events), events_(std::make_unique<Events>(form, std::move(address_of))) {}

ChunkWriter::~ChunkWriter() = default;
ChunkWriter::ChunkWriter(ChunkWriter&&) noexcept = default;
ChunkWriter& ChunkWriter::operator=(ChunkWriter&&) noexcept = default;

void ChunkWriter::put(const Event& event, uint64_t steps) {
  if (count_ == 0) first_steps_ = steps;
  events_->put(event, steps);
  ++count_;
}

void ChunkWriter::define_module(uint32_t number, std::string_view path, uint32_t generation,
                                std::string_view build_id, uint64_t base) {
  ++modules_;
  module_text_.put(number);
  module_text_.put_text(path);
  module_text_.put(generation);
  module_text_.put_text(build_id);
  module_text_.put(base);
}

void ChunkWriter::define_python(uint64_t frame, const Python& python) {
  ++pythons_;
  python_text_.put(frame);
  python_text_.put(python.file);
  python_text_.put(python.offset);
  python_text_.put_text(python.function);
  python_text_.put(python.line);
}

void ChunkWriter::define_stack(uint32_t number, const Stack& stack) {
  ++stacks_;
  column(format::kStackNumbers)
      .put_signed(int64_t{number} - std::exchange(last_stack_, number) - 1);
  Column& facts = column(format::kStackFacts);
  facts.put(stack.cut ? 1 : 0);
  facts.put_text(stack.kind);
  facts.put_text(stack.call);
  facts.put(stack.guessed);
  put_frames(stack.frames);
}

// Many stacks have their outermost frames from the one before, and most frames are of many stacks.
void ChunkWriter::put_frames(const std::vector<FrameWord>& frames) {
  const auto differ =
      std::mismatch(frames.rbegin(), frames.rend(), last_frames_.rbegin(), last_frames_.rend());
  const auto shared = static_cast<size_t>(differ.first - frames.rbegin());
  column(format::kStackShared).put(shared);
  column(format::kStackOwn).put(frames.size() - shared);
  for (size_t i = 0; i < frames.size() - shared; ++i) {
    const auto [known, fresh] =
        frame_numbers_.try_emplace({frames[i].module, frames[i].offset}, frame_numbers_.size() + 1);
    column(format::kStackFrames).put_symbol(fresh ? 0 : known->second);
    if (!fresh) continue;
    column(format::kStackModules).put(frames[i].module);
    column(format::kStackOffsets)
        .put_signed(
            static_cast<int64_t>(frames[i].offset - std::exchange(last_offset_, frames[i].offset)));
  }
  last_frames_ = frames;
  frames_ += frames.size();
}

void ChunkWriter::define_thread(uint32_t number, uint32_t tid, std::string_view name) {
  ++threads_;
  thread_text_.put(number);
  thread_text_.put(tid);
  thread_text_.put_text(name);
}

std::string ChunkWriter::finish() {
  Column head;
  head.put_raw(format::kEventChunkMark);
  head.put_byte('0' + format::kEventsVersion);
  head.put(first_event_);
  head.put(first_steps_);
  const auto put_definitions = [&](size_t number, Column& text) {
    head.put(number);
    head.put_raw(text.bytes());
    text.clear();
  };
  put_definitions(modules_, module_text_);
  put_definitions(pythons_, python_text_);
  head.put(stacks_);
  for (Column& column : stack_columns_) {
    head.put_text(column.bytes());
    column.clear();
  }
  put_definitions(threads_, thread_text_);
  head.put(count_);
  events_->finish(head);
  first_event_ += count_;
  count_ = frames_ = modules_ = pythons_ = stacks_ = threads_ = 0;
  last_stack_ = 0;
  last_offset_ = 0;
  last_frames_.clear();
  frame_numbers_.clear();
  return std::string(head.bytes());
}

}  // namespace mtrace::events
