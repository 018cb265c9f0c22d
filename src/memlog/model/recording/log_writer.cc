#include "model/recording/log_writer.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format/event_log.h"
#include "format/python.h"
#include "model/events/event_header.h"
#include "model/recording/left_out.h"
#include "util/text.h"

namespace mtrace::events {
namespace {

// Marks a number; false: it was marked before.
bool mark(std::vector<bool>& marked, uint32_t number) {
  if (number >= marked.size()) marked.resize(number + size_t{1});
  const bool fresh = !marked[number];
  marked[number] = true;
  return fresh;
}

}  // namespace

LogWriter::LogWriter(const EventLog& from, std::string_view left_out, Append append)
    : from_(from), left_out_text_(left_out), append_(std::move(append)), chunk_(new_chunk()) {
  append_head();
}

ChunkWriter LogWriter::new_chunk() const {
  return ChunkWriter(
      from_.header().compact ? format::EventForm::kCompact : format::EventForm::kFull,
      state_ != nullptr ? format::kShortChunkEvents : format::kChunkEvents,
      [this](uint64_t address) { return from_.address_of(address); });
}

void LogWriter::append_head(const std::string& before) {
  Column head;
  head.put_raw(from_.head());
  for (const auto& [key, value] : {std::pair(format::kEventsLeftOut, left_out_text_),
                                   std::pair(format::kEventsBefore, before)}) {
    if (value.empty()) continue;
    head.put_text(key);
    head.put_text(value);
  }
  append_(std::string(head.bytes()));
}

void LogWriter::begin_file(absl::FunctionRef<void()> open_next) {
  Event event;
  event.kind = Kind::kEnd;
  event.number = static_cast<uint64_t>(EndReason::kContinued);
  event.time = now();
  write(event);
  flush();
  open_next();
  chunk_ = new_chunk();
  for (auto* marked : {&modules_, &stacks_, &threads_}) marked->clear();
  python_.clear();
  BeforeFile before = state_->before(now());
  // What the process inherited is not known here: frees of it are no unknown ones.
  if (from_.header().parent_log.empty()) before.unknown_frees += state_->blocks().unknown_frees();
  append_head(before_text(before));
  put_live();
  left_out_ = state_->sums();
  flush();
}

// A block that moves comes first: another may live where it was.
void LogWriter::put_live() {
  const auto put_inherited = [&](uint64_t address, const LiveBlock& block) {
    write({.kind = Kind::kInherited,
           .call = block.call,
           .thread = block.thread,
           .stack = block.stack,
           .time = now(),
           .address = address,
           .requested = block.requested,
           .usable = block.usable,
           .number = block.time});
  };
  absl::flat_hash_set<uint64_t> moving;  // ids
  state_->blocks().for_each_moving([&](uint32_t thread, uint64_t address, const LiveBlock& block) {
    moving.insert(block.id);
    put_inherited(address, block);
    write({.kind = Kind::kReallocBegin, .thread = thread, .time = now(), .address = address});
  });
  std::vector<std::pair<uint64_t, LiveBlock>> live;
  state_->blocks().for_each([&](uint64_t address, const LiveBlock& block) {
    if (!moving.contains(block.id)) live.emplace_back(address, block);
  });
  std::sort(live.begin(), live.end(),
            [](const auto& a, const auto& b) { return a.second.id < b.second.id; });
  for (const auto& [address, block] : live) put_inherited(address, block);
}

// Returns what stands for the frame of a Python function. The one in `from_` is not known any more.
uint64_t LogWriter::define_python(const profile::Frame& frame) {
  constexpr unsigned kBits = format::PythonFrame::kInstructionBits - 1;
  const std::string_view source = frame.source.text();
  const size_t colon = source.rfind(':');
  const uint64_t line =
      colon == source.npos ? 0 : util::read_unsigned(source.substr(colon + 1)).value_or(0);
  const auto [at, fresh] = python_.try_emplace(
      fmt::format("{} {} {} {}", frame.module, frame.offset, line, frame.function.text()));
  if (fresh) {
    // Code 0 is of functions without room.
    const uint64_t number = python_.size();
    at->second = format::PythonFrame::pack(static_cast<uint32_t>(1 + (number >> kBits)),
                                           static_cast<int32_t>(number & ((1u << kBits) - 1)));
    chunk_.define_python(at->second, {frame.module, frame.offset, frame.function.text(), line});
  }
  return at->second;
}

void LogWriter::define_stack(uint32_t number) {
  if (number == 0 || !mark(stacks_, number)) return;
  const EventStack& stack = from_.stack(number);
  std::vector<ChunkWriter::FrameWord> frames;
  unsigned guessed = 0;
  for (const profile::Frame& frame : stack.frames) {
    if (frame.guessed && guessed == 0) guessed = static_cast<unsigned>(frames.size());
    if (frame.place != profile::Place::kModule) {
      frames.push_back({0, frame.offset});
      continue;
    }
    const profile::Module& module = from_.modules()[frame.module];
    if (mark(modules_, frame.module)) {
      chunk_.define_module(frame.module, module.path, module.python ? 0 : module.generation,
                           module.build_id, module.base);
    }
    if (module.python) {
      frames.push_back({0, define_python(frame)});
      continue;
    }
    frames.push_back({uint64_t{frame.module} + 1, frame.offset});
  }
  chunk_.define_stack(number, {stack.kind, stack.call, stack.cut, guessed, frames});
}

void LogWriter::define_thread(uint32_t number) {
  if (number == 0 || !mark(threads_, number)) return;
  const EventThread& thread = from_.thread(number);
  chunk_.define_thread(number, thread.tid, thread.name);
}

void LogWriter::put(const Event& event) {
  if (event.kind == Kind::kLeftOut) return add(*event.left_out);
  if (state_ != nullptr) state_->apply(event);
  write(event);
}

uint64_t LogWriter::now() const { return from_.header().started + steps_ * format::kEventTimeStep; }

void LogWriter::write(const Event& event) {
  define_stack(event.stack);
  define_thread(event.thread);
  steps_ = std::max(steps_, (event.time - from_.header().started) / format::kEventTimeStep);
  chunk_.put(event, steps_);
  if (chunk_.full()) flush();
}

void LogWriter::count_allocation(uint32_t stack, uint64_t bytes) {
  LeftOut one;
  one.stack = stack;
  one.allocations = 1;
  one.allocated = bytes;
  add(one);
}

void LogWriter::count_free(uint32_t stack, uint64_t bytes, uint64_t lifetime, bool temporary) {
  add(ended_block(stack, bytes, lifetime, from_.header().short_lived, temporary));
}

void LogWriter::add(const LeftOut& more) {
  add_left_out(left_out_[more.stack], more);
  if (state_ != nullptr) state_->count(more);
}

void LogWriter::flush() {
  for (const auto& [stack, counts] : left_out_) {
    define_stack(stack);
    if (chunk_.full()) append_(chunk_.finish());
  }
  if (!chunk_.empty()) append_(chunk_.finish());
  if (!left_out_.empty()) append_left_out();
}

void LogWriter::append_left_out() {
  Column out;
  out.put_raw({format::kLeftOutMark, format::kEventMark});
  out.put(steps_);
  out.put(left_out_.size());
  for (const auto& [stack, one] : left_out_) {
    out.put(stack);
    for (const uint64_t value :
         {one.allocations, one.allocated, one.frees, one.freed, one.short_lived, one.lifetime,
          one.shortest, one.longest, one.temporary}) {
      out.put(value);
    }
  }
  left_out_.clear();
  append_(std::string(out.bytes()));
}

}  // namespace mtrace::events
