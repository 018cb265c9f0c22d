#include "view/export/event_stream.h"

#include "model/events/event_log.h"
#include "util/file.h"
#include "util/json.h"
#include "util/text.h"
#include "view/export/heaptrack.h"

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
  heap::SizeClass& sum = classes[heap::SizeHistogram::class_of(size)];
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
    heap::SizeClass& sum = sizes_[block.stack][heap::SizeHistogram::class_of(block.size)];
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

namespace {

constexpr uint64_t kMoments = 2000;
constexpr size_t kFunctions = 10;
constexpr size_t kBlocks = 1000;

std::string json_text(const std::string& text) { return json::compact(text); }

// What must be known of a log before it is written: also its largest blocks.
class Largest : public Measuring {
 public:
  using Measuring::Measuring;

  void allocated(uint64_t time, const StreamedBlock& block) override {
    Measuring::allocated(time, block);
    if (blocks_.size() == kBlocks) {
      if (block.size <= blocks_.begin()->first) return;
      blocks_.erase(blocks_.begin());
    }
    blocks_.emplace(block.size, block.id);
  }
  absl::flat_hash_set<uint64_t> ids() const {
    absl::flat_hash_set<uint64_t> ids;
    for (const auto& [size, id] : blocks_) ids.insert(id);
    return ids;
  }

 private:
  std::set<std::pair<uint64_t, uint64_t>> blocks_;  // size and id
};

// The functions whose stacks have the most live bytes.
class Functions {
 public:
  Functions(const Stacks& stacks, const StreamMeasure& measure) {
    std::vector<std::pair<uint64_t, size_t>> order;  // bytes, location
    std::vector<uint64_t> sums(stacks.locations.size());
    for (size_t i = 0; i < stacks.stacks.size(); ++i) {
      const std::vector<size_t>& locations = stacks.stacks[i].locations;
      if (!locations.empty()) sums[locations.front()] += measure.most[i];
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      if (sums[i] != 0) order.emplace_back(sums[i], i);
    }
    const size_t shown = std::min(order.size(), kFunctions);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown),
                      order.end(), std::greater<>());
    std::vector<size_t> place(stacks.locations.size(), kFunctions);
    for (size_t i = 0; i < shown; ++i) {
      place[order[i].second] = i;
      names_.push_back(json_text(stacks.locations[order[i].second].function));
    }
    for (const Stack& stack : stacks.stacks) {
      of_.push_back(stack.locations.empty() ? kFunctions : place[stack.locations.front()]);
    }
  }

  // Of the stack, less than kFunctions if it is one of them.
  size_t of(size_t stack) const { return of_[stack]; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;  // in quotes
  std::vector<size_t> of_;
};

class TraceSink : public EventSink {
 public:
  TraceSink(const EventStream& stream, const Stacks& stacks, const StreamMeasure& measure,
            absl::flat_hash_set<uint64_t> largest, const WriteText& write)
      : pid_(stream.header().pid),
        stacks_(stacks),
        functions_(stacks, measure),
        largest_(std::move(largest)),
        moments_(0, std::max<uint64_t>(measure.length / kMoments, 1)),
        write_(write) {
    text_ = fmt::format(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"program\":{}}},\"traceEvents\":[\n"
        "{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
        json_text(util::escaped(stream.header().program, "")), pid_,
        json_text(util::base_name(util::escaped(stream.header().program, ""))));
  }

  void allocated(uint64_t time, const StreamedBlock& block) override {
    before(time);
    live_ += block.size;
    ++blocks_;
    allocated_ += block.size;
    const size_t function = functions_.of(block.stack);
    if (function < kFunctions) by_function_[function] += block.size;
    if (!largest_.contains(block.id)) return;
    const std::vector<size_t>& locations = stacks_.stacks[block.stack].locations;
    std::string stack;
    for (const size_t location : locations) {
      if (!stack.empty()) stack += " < ";
      stack += stacks_.locations[location].function;
    }
    const std::string name =
        locations.empty() ? "?" : stacks_.locations[locations.front()].function;
    names_[block.id] = json_text(name);
    add(
        fmt::format("\"ph\":\"b\",\"cat\":\"block\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":{},"
                    "\"name\":{},\"args\":{{\"bytes\":{},\"address\":\"{}\",\"stack\":{}}}",
                    block.id, pid_, block.thread, micro(time), names_[block.id], block.size,
                    events::address_text(block.address), json_text(stack)));
  }
  void freed(uint64_t time, const StreamedBlock& block, uint32_t thread) override {
    before(time);
    live_ -= block.size;
    --blocks_;
    freed_ += block.size;
    const size_t function = functions_.of(block.stack);
    if (function < kFunctions) by_function_[function] -= block.size;
    if (!largest_.contains(block.id)) return;
    add(
        fmt::format("\"ph\":\"e\",\"cat\":\"block\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":{},"
                    "\"name\":{}",
                    block.id, pid_, thread, micro(time), names_[block.id]));
    names_.erase(block.id);
  }
  void resident(uint64_t time, uint64_t bytes) override {
    counter("resident", time, fmt::format("\"bytes\":{}", bytes));
  }
  void thread_begins(uint64_t time, const events::EventThread& thread) override {
    begins_[thread.tid] = time;
    if (thread.name.empty()) return;
    add(
        fmt::format("\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\","
                    "\"args\":{{\"name\":{}}}",
                    pid_, thread.tid, json_text(thread.name)));
  }
  void thread_ends(uint64_t time, const events::EventThread& thread) override {
    const auto begun = begins_.find(thread.tid);
    if (begun == begins_.end()) return;
    add(
        fmt::format("\"ph\":\"X\",\"cat\":\"thread\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
                    "\"name\":\"thread\"",
                    pid_, thread.tid, micro(begun->second), micro(time - begun->second)));
    begins_.erase(begun);
  }
  void marked(uint64_t time, std::string_view text) override {
    add(fmt::format("\"ph\":\"i\",\"s\":\"p\",\"pid\":{},\"tid\":{},\"ts\":{},\"name\":{}", pid_,
                    pid_, micro(time), json_text(util::escaped(std::string(text), ""))));
  }
  void passed(uint64_t time) override { last_ = time; }
  void finish() {
    moment(last_);
    text_ += "\n]}\n";
    write_(text_);
  }

 private:
  static std::string micro(uint64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  }
  void add(const std::string& event) {
    constexpr size_t kPart = 1 << 20;
    text_ += ",\n{" + event + '}';
    if (text_.size() < kPart) return;
    write_(text_);
    text_.clear();
  }
  void counter(const char* name, uint64_t time, const std::string& values) {
    add(fmt::format("\"ph\":\"C\",\"pid\":{},\"ts\":{},\"name\":\"{}\",\"args\":{{{}}}", pid_,
                    micro(time), name, values));
  }
  // A counter keeps its value until the next event: so a moment is told where something changes.
  void before(uint64_t time) {
    moments_.before(time, [this](uint64_t at) { moment(at); });
  }
  void moment(uint64_t time) {
    counter("live bytes", time, fmt::format("\"bytes\":{}", live_));
    counter("live blocks", time, fmt::format("\"blocks\":{}", blocks_));
    counter("allocated and freed, bytes", time,
            fmt::format("\"allocated\":{},\"freed\":{}", allocated_, freed_));
    allocated_ = freed_ = 0;
    std::string values;
    uint64_t rest = live_;
    for (size_t i = 0; i < functions_.names().size(); ++i) {
      values += fmt::format("{}:{},", functions_.names()[i], by_function_[i]);
      rest -= by_function_[i];
    }
    counter("live bytes by function", time, values + fmt::format("\"others\":{}", rest));
  }

  int64_t pid_;
  const Stacks& stacks_;
  Functions functions_;
  absl::flat_hash_set<uint64_t> largest_;
  Moments moments_;
  const WriteText& write_;
  std::string text_;
  absl::flat_hash_map<uint64_t, std::string> names_;  // of blocks that live, by id
  absl::flat_hash_map<uint32_t, uint64_t> begins_;    // of threads
  uint64_t live_ = 0;
  uint64_t blocks_ = 0;
  uint64_t allocated_ = 0;  // since the last moment, bytes; so is `freed_`
  uint64_t freed_ = 0;
  std::array<uint64_t, kFunctions> by_function_ = {};
  uint64_t last_ = 0;
};

}  // namespace

void chrome_trace(const EventStream& stream, const Stacks& stacks, const WriteText& write) {
  Largest first(stream);
  stream.replay(first);
  TraceSink sink(stream, stacks, first.found(), first.ids(), write);
  stream.replay(sink);
  sink.finish();
}

}  // namespace mtrace::exporting
