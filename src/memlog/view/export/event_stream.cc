#include "view/export/event_stream.h"

#include <algorithm>
#include <utility>

#include "util/text.h"
#include "view/export/heaptrack.h"
#include "view/export/massif.h"

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

}  // namespace mtrace::exporting
