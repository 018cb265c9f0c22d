#include "model/events/log_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format/event_log.h"
#include "format/python.h"
#include "util/text.h"

namespace mtrace::events {
namespace {

constexpr uint64_t kShortLived = 100'000'000;  // nanoseconds, as MTRACE_TEMPORARY_MS

// Marks a number; false: it was marked before.
bool mark(std::vector<bool>& marked, uint32_t number) {
  if (number >= marked.size()) marked.resize(number + size_t{1});
  const bool fresh = !marked[number];
  marked[number] = true;
  return fresh;
}

}  // namespace

LogWriter::LogWriter(const EventLog& from, std::string_view left_out, Append append)
    : from_(from),
      append_(std::move(append)),
      chunk_(from.header().compact ? format::EventForm::kCompact : format::EventForm::kFull,
             [&from](uint64_t address) { return from.address_of(address); }) {
  Column head;
  head.put_raw(from.head());
  head.put_text(format::kEventsLeftOut);
  head.put_text(left_out);
  append_(std::string(head.bytes()));
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

// A frame of code made at run time.
void LogWriter::define_made(const profile::Frame& frame) {
  if (!made_.insert(frame.offset).second) return;
  chunk_.define_python(frame.offset,
                       {ChunkWriter::kNoModule, frame.offset, frame.function.text(), 0});
}

void LogWriter::define_stack(uint32_t number) {
  if (number == 0 || !mark(stacks_, number)) return;
  const EventStack& stack = from_.stack(number);
  std::vector<ChunkWriter::FrameWord> frames;
  unsigned guessed = 0;
  for (const profile::Frame& frame : stack.frames) {
    if (frame.guessed && guessed == 0) guessed = static_cast<unsigned>(frames.size());
    if (frame.place != profile::Place::kModule) {
      if (!frame.function.text().empty() && !format::PythonFrame::is_one(frame.offset)) {
        define_made(frame);
      }
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

void LogWriter::count_free(uint32_t stack, uint64_t bytes, uint64_t lifetime) {
  LeftOut one;
  one.stack = stack;
  one.frees = 1;
  one.freed = bytes;
  one.short_lived = lifetime <= kShortLived ? 1 : 0;
  one.lifetime = one.shortest = one.longest = lifetime;
  add(one);
}

void LogWriter::add(const LeftOut& more) {
  LeftOut& sum = left_out_[more.stack];
  sum.stack = more.stack;
  sum.allocations += more.allocations;
  sum.allocated += more.allocated;
  sum.frees += more.frees;
  sum.freed += more.freed;
  sum.short_lived += more.short_lived;
  sum.lifetime += more.lifetime;
  sum.shortest = std::min(sum.shortest, more.shortest);
  sum.longest = std::max(sum.longest, more.longest);
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
    for (const uint64_t value : {one.allocations, one.allocated, one.frees, one.freed,
                                 one.short_lived, one.lifetime, one.shortest, one.longest}) {
      out.put(value);
    }
  }
  left_out_.clear();
  append_(std::string(out.bytes()));
}

}  // namespace mtrace::events
