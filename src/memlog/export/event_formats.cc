#include "export/event_formats.h"

#include <algorithm>
#include <utility>

#include "export/heaptrack.h"
#include "export/massif.h"
#include "profile/text.h"

namespace mtrace::exporting {
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
  return profile::escaped(stream.header().program, "");
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
