#include "view/export/event_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "util/file.h"
#include "util/text.h"
#include "util/time.h"
#include "view/export/heaptrack.h"
#include "view/export/timeline.h"

namespace mtrace::exporting {

void Measuring::allocated(uint64_t, const StreamedBlock& block) {
  ++found_.changes;
  live_.add(block);
  uint64_t& most = found_.most[block.stack];
  most = std::max(most, live_.bytes()[block.stack]);
  if (live_.total() <= found_.peak) return;
  found_.peak = live_.total();
  found_.peak_change = found_.changes;
}

void Measuring::freed(uint64_t, const StreamedBlock& block, uint32_t) {
  ++found_.changes;
  live_.remove(block);
}

void Measuring::passed(uint64_t time) { found_.length = std::max(found_.length, time); }

std::vector<uint64_t> ids_of(const Stacks& stacks) {
  std::vector<uint64_t> ids;
  for (const Stack& stack : stacks.stacks) ids.push_back(stack.row->stack);
  return ids;
}

EventStream::EventStream(std::string path, const events::BlockSelection* chosen,
                         std::vector<uint64_t> stacks)
    : path_(std::move(path)),
      chosen_(chosen),
      header_(events::EventLog(path_).header()),
      stacks_(std::move(stacks)) {
  for (size_t i = 0; i < stacks_.size(); ++i) places_.try_emplace(stacks_[i], i);
}

void EventStream::replay(EventSink& sink) const {
  using events::Kind;
  events::EventLog log(path_);
  events::LiveBlocks blocks;
  const auto since = [&](uint64_t time) { return time - std::min(time, header_.started); };
  const auto tid = [&](uint32_t thread) { return thread == 0 ? 0 : log.thread(thread).tid; };
  // Whether the block is one of those that are wanted.
  const auto read = [&](const events::LiveBlock& block, uint64_t address, StreamedBlock& out) {
    if (chosen_ != nullptr && !chosen_->holds(block.id)) return false;
    const auto place = places_.find(log.stack(block.stack).id);
    if (place == places_.end()) return false;
    const bool inherited = block.time < header_.started;
    out = {place->second, address,           block.requested,
           block.id,      tid(block.thread), inherited ? 0 : since(block.time),
           inherited};
    return true;
  };
  StreamedBlock block;
  for (events::Event event; log.next(event);) {
    blocks.expect(log);
    const events::BlockChange change = blocks.apply(event);
    const uint64_t time = since(event.time);
    if (change.ended && read(change.old, change.old_address, block)) {
      sink.freed(time, block, tid(event.thread));
    }
    if ((change.begun || change.inherited) && read(change.fresh, event.address, block)) {
      sink.allocated(change.inherited ? 0 : time, block);
    }
    if (event.kind == Kind::kMemory) sink.resident(time, event.number);
    if (event.kind == Kind::kThreadBegin) sink.thread_begins(time, log.thread(event.thread));
    if (event.kind == Kind::kThreadEnd) sink.thread_ends(time, log.thread(event.thread));
    if (event.kind == Kind::kNote) sink.marked(time, event.text);
    if (event.kind == Kind::kReport) {
      const std::string number = "report " + std::to_string(event.number);
      sink.marked(time, event.text.empty() ? number : number + ": " + std::string(event.text));
    }
    sink.passed(time);
  }
}

StreamMeasure measure(const EventStream& stream) {
  Measuring sink(stream);
  stream.replay(sink);
  return sink.found();
}
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kMassifMoments = 100;

class HeaptrackSink : public EventSink {
 public:
  HeaptrackSink(const std::string& program, const Stacks& stacks, const analyze::Table& table,
                const WriteText& write)
      : stacks_(stacks), out_(program, table, stacks.locations), write_(write) {}

  void allocated(uint64_t time, const StreamedBlock& block) override { tell(true, time, block); }
  void freed(uint64_t time, const StreamedBlock& block, uint32_t) override {
    tell(false, time, block);
  }
  void resident(uint64_t time, uint64_t bytes) override {
    out_.resident(time / kMillisecond, bytes);
  }
  void passed(uint64_t time) override { last_ = time; }
  void finish() {
    out_.time(last_ / kMillisecond);
    write_(out_.finish());
  }

 private:
  void tell(bool allocates, uint64_t time, const StreamedBlock& block) {
    constexpr size_t kPart = 1 << 20;
    const Stack& stack = stacks_.stacks[block.stack];
    out_.event(time / kMillisecond, allocates, block.stack, stack, block.size);
    if (out_.size() >= kPart) write_(out_.finish());
  }

  const Stacks& stacks_;
  Heaptrack out_;
  const WriteText& write_;
  uint64_t last_ = 0;
};

class MassifSink : public EventSink {
 public:
  MassifSink(const std::string& program, const Stacks& stacks, StreamMeasure measure)
      : stacks_(stacks),
        measure_(std::move(measure)),
        live_(stacks.stacks.size()),
        moments_(first_moment(measure_), first_moment(measure_)),
        out_(program, "bytes") {}

  void allocated(uint64_t time, const StreamedBlock& block) override {
    before(time);
    live_.add(block);
    if (++changes_ == measure_.peak_change) snapshot(time);
  }
  void freed(uint64_t time, const StreamedBlock& block, uint32_t) override {
    before(time);
    live_.remove(block);
    ++changes_;
  }
  std::string finish() {
    snapshot(measure_.length);
    return out_.finish();
  }

 private:
  static uint64_t first_moment(const StreamMeasure& measure) {
    return std::max(measure.length / kMassifMoments, kMillisecond);
  }
  // What was live at the moments that have passed.
  void before(uint64_t time) {
    moments_.before(time, [this](uint64_t moment) { snapshot(moment); });
  }
  void snapshot(uint64_t time) {
    stacks_.total = live_.total();
    for (size_t i = 0; i < stacks_.stacks.size(); ++i) stacks_.stacks[i].value = live_.bytes()[i];
    out_.snapshot(time / kMillisecond, stacks_);
  }

  Stacks stacks_;
  StreamMeasure measure_;
  LiveStacks live_;
  Moments moments_;
  uint64_t changes_ = 0;
  Massif out_;
};

void add_block(SizeClasses& classes, uint64_t size) {
  analyze::SizeClass& sum = classes[analyze::SizeHistogram::class_of(size)];
  ++sum.blocks;
  sum.bytes += size;
}

class CourseSink : public EventSink {
 public:
  CourseSink(const EventStream& stream, const StreamMeasure& measure)
      : stacks_(stream.stacks()), peak_change_(measure.peak_change), sizes_(stacks_.size()) {
    constexpr uint64_t kMostSamples = 200;
    const events::EventHeader& header = stream.header();
    if (header.process_started != 0) began_ = header.started - header.process_started;
    step_ = (measure.length / kMostSamples / kMillisecond + 1) * kMillisecond;
    next_ = step_;
  }

  void allocated(uint64_t time, const StreamedBlock& block) override {
    advance(time);
    live_ += block.size;
    most_ = std::max(most_, live_);
    add_block(sizes_[block.stack], block.size);
    if (++changes_ == peak_change_) out_.at_peak = sizes();
  }
  void freed(uint64_t time, const StreamedBlock& block, uint32_t) override {
    advance(time);
    live_ -= block.size;
    ++changes_;
    analyze::SizeClass& sum = sizes_[block.stack][analyze::SizeHistogram::class_of(block.size)];
    --sum.blocks;
    sum.bytes -= block.size;
  }
  void resident(uint64_t time, uint64_t bytes) override {
    advance(time);
    resident_ = bytes;
  }
  LogCourse finish() {
    sample();
    if (live_ != out_.samples.back().live) {
      most_ = live_;
      sample();
    }
    out_.at_end = sizes();
    return std::move(out_);
  }

 private:
  void advance(uint64_t time) {
    for (; next_ <= time; next_ += step_) sample();
  }
  // What was live at most, until now.
  void sample() {
    out_.samples.push_back(
        {.milliseconds = (began_ + next_) / kMillisecond, .live = most_, .resident = resident_});
    most_ = live_;
  }
  StackSizes sizes() const {
    StackSizes out;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      for (const auto& [number, sum] : sizes_[i]) {
        if (sum.blocks != 0) out[stacks_[i]][number] = sum;
      }
    }
    return out;
  }

  const std::vector<uint64_t>& stacks_;
  const uint64_t peak_change_;
  uint64_t changes_ = 0;
  std::vector<SizeClasses> sizes_;  // of what is live, by stack
  uint64_t began_ = 0;              // nanoseconds, as all times here: after the process
  uint64_t step_ = 0;
  uint64_t next_ = 0;  // sample
  uint64_t live_ = 0;
  uint64_t most_ = 0;  // since the last sample
  uint64_t resident_ = 0;
  LogCourse out_;
};

std::string program_of(const EventStream& stream) {
  return util::escaped(stream.header().program, "");
}

}  // namespace

void heaptrack_of_events(const EventStream& stream, const Stacks& stacks,
                         const analyze::Table& table, const WriteText& write) {
  HeaptrackSink sink(program_of(stream), stacks, table, write);
  stream.replay(sink);
  sink.finish();
}

std::string massif_of_events(const EventStream& stream, const Stacks& stacks) {
  MassifSink sink(program_of(stream), stacks, measure(stream));
  stream.replay(sink);
  return sink.finish();
}

LogCourse log_course(const EventStream& stream) {
  CourseSink sink(stream, measure(stream));
  stream.replay(sink);
  return sink.finish();
}

std::map<int64_t, StackSizes> exact_sizes(const std::string& path,
                                          const std::vector<profile::Header>& headers) {
  const events::EventHeader header = events::EventLog(path).header();
  const std::string begun = util::time_text(header.started);
  const profile::Header& last = headers.back();
  if (header.pid != last.pid || begun < last.started || begun > last.taken) {
    throw std::runtime_error(
        fmt::format("{}: the log of another process: {}[{}], begun at {}", util::escaped(path, ""),
                    util::escaped(util::base_name(header.program), ""), header.pid, begun));
  }
  std::map<int64_t, StackSizes> sizes;
  events::each_report(
      path, [&](uint64_t number, const events::EventLog& log, const events::LiveBlocks& blocks) {
        for (size_t i = 0; i < headers.size(); ++i) {
          if (headers[i].seq != static_cast<int64_t>(number)) continue;
          StackSizes& stacks = sizes[static_cast<int64_t>(i) + 1];
          blocks.for_each([&](uint64_t, const events::LiveBlock& block) {
            add_block(stacks[log.stack(block.stack).id], block.requested);
          });
        }
      });
  if (sizes.empty()) {
    throw std::runtime_error(
        fmt::format("{}: the log has none of these reports", util::escaped(path, "")));
  }
  return sizes;
}

}  // namespace mtrace::exporting
