#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "util/file.h"
#include "util/json.h"
#include "util/text.h"
#include "view/export/event_stream.h"

namespace mtrace::exporting {
namespace {

using json::Value;

constexpr uint64_t kFirefoxMoments = 2000;
constexpr uint64_t kFormatVersion = 54;
constexpr uint64_t kGeckoVersion = 24;

double milliseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

// The tables of frames, functions and stacks, each row once.
class Tables {
 public:
  Tables(const Stacks& stacks, const analyze::Table& table) {
    for (const Location& location : stacks.locations) add(location, table);
    for (const Stack& stack : stacks.stacks) {
      int64_t caller = kNone;
      for (size_t i = stack.locations.size(); i-- > 0;) {
        const auto [place, added] =
            nodes_.try_emplace({caller, stack.locations[i]}, prefixes_.size());
        if (added) {
          prefixes_.push_back(caller == kNone ? Value() : Value(caller));
          node_frames_.push_back(stack.locations[i]);
        }
        caller = static_cast<int64_t>(place->second);
      }
      stacks_.push_back(caller);
    }
  }

  // The row of the stack table, as JSON.
  std::string stack(size_t index) const {
    return stacks_[index] == kNone ? "null" : std::to_string(stacks_[index]);
  }
  size_t string(const std::string& text) {
    const auto [place, added] = known_.try_emplace(text, strings_.size());
    if (added) strings_.push_back(text);
    return place->second;
  }
  const Value& libraries() const { return libraries_; }

  // Adds the tables to a thread.
  void put(Value& thread) const {
    const size_t frames = functions_.size();
    const Value none(frames, nullptr);
    const Value zero(frames, 0);
    const Value no(frames, false);
    Value func = Value::array();
    for (size_t i = 0; i < frames; ++i) func.push_back(i);
    thread["frameTable"] = {{"length", frames},     {"address", Value(frames, -1)},
                            {"inlineDepth", zero},  {"category", zero},
                            {"subcategory", zero},  {"func", std::move(func)},
                            {"nativeSymbol", none}, {"innerWindowID", none},
                            {"line", lines_},       {"column", none}};
    thread["funcTable"] = {{"length", frames},    {"name", functions_},     {"isJS", no},
                           {"relevantForJS", no}, {"resource", resources_}, {"fileName", files_},
                           {"lineNumber", none},  {"columnNumber", none}};
    thread["stackTable"] = {
        {"length", prefixes_.size()}, {"prefix", prefixes_}, {"frame", node_frames_}};
    const size_t resources = resource_names_.size();
    constexpr int kLibrary = 1;
    Value library = Value::array();
    for (size_t i = 0; i < resources; ++i) library.push_back(i);
    thread["resourceTable"] = {{"length", resources},
                               {"lib", std::move(library)},
                               {"name", resource_names_},
                               {"host", Value(resources, nullptr)},
                               {"type", Value(resources, kLibrary)}};
    thread["nativeSymbols"] = {{"length", 0},
                               {"address", Value::array()},
                               {"functionSize", Value::array()},
                               {"libIndex", Value::array()},
                               {"name", Value::array()}};
    thread["stringArray"] = strings_;
  }

 private:
  static constexpr int64_t kNone = -1;
  void add(const Location& location, const analyze::Table& table) {
    functions_.push_back(string(location.function));
    lines_.push_back(location.line == 0 ? Value(nullptr) : Value(location.line));
    files_.push_back(location.file.empty() ? Value(nullptr) : Value(string(location.file)));
    if (location.module == Location::kNoModule) {
      resources_.push_back(-1);
      return;
    }
    const auto [place, added] = modules_.try_emplace(location.module, resource_names_.size());
    if (added) {
      const profile::Module& module = table.modules()[location.module];
      const std::string path = util::escaped(module.path, "");
      const std::string name = util::base_name(path);
      std::string id;
      for (const char byte : module.build_id) {
        id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      }
      resource_names_.push_back(string(name));
      libraries_.push_back({{"name", name},
                            {"path", path},
                            {"debugName", name},
                            {"debugPath", path},
                            {"breakpadId", ""},
                            {"codeId", id.empty() ? Value(nullptr) : Value(id)},
                            {"arch", nullptr}});
    }
    resources_.push_back(place->second);
  }

  std::vector<std::string> strings_;
  absl::flat_hash_map<std::string, size_t> known_;
  std::vector<size_t> functions_;
  Value lines_ = Value::array();
  Value files_ = Value::array();
  Value resources_ = Value::array();
  std::vector<size_t> resource_names_;
  absl::flat_hash_map<size_t, size_t> modules_;
  Value libraries_ = Value::array();
  absl::flat_hash_map<std::pair<int64_t, size_t>, size_t> nodes_;
  Value prefixes_ = Value::array();
  std::vector<size_t> node_frames_;
  std::vector<int64_t> stacks_;  // row, or kNone
};

struct Sample {
  uint64_t time;
  int64_t bytes;
  size_t stack;
  uint64_t address;  // the same of what is allocated and freed
  uint32_t thread;
};

// Adds up blocks of a stack and a thread that were allocated within one interval, and freed within
// one, if they were. The interval doubles until there are at most `most` samples.
class BlockSums {
 public:
  explicit BlockSums(size_t most) : most_(most) {}

  void allocated(const StreamedBlock& block) { add({key_of(block), kNever, 0}, block.size); }
  void freed(uint64_t time, const StreamedBlock& block, uint32_t thread) {
    const auto live = sums_.find({key_of(block), kNever, 0});
    if (live == sums_.end()) return;  // a damaged log has told of its thread too late
    live->second.bytes -= block.size;
    if (--live->second.blocks == 0) sums_.erase(live);
    add({key_of(block), time >> shift_, thread}, block.size);
  }
  uint64_t interval() const { return uint64_t{1} << shift_; }  // nanoseconds

  // In the order of their times. Within an interval, allocations are first.
  std::vector<Sample> samples() const {
    std::vector<Sample> out;
    uint64_t number = 0;
    for (const auto& [lives, sum] : sums_) {
      const auto& [born, died, thread] = lives;
      const auto bytes = static_cast<int64_t>(sum.bytes);
      out.push_back(
          {std::get<0>(born) << shift_, bytes, std::get<1>(born), ++number, std::get<2>(born)});
      if (died != kNever) {
        out.push_back({died << shift_, -bytes, std::get<1>(born), number, thread});
      }
    }
    std::sort(out.begin(), out.end(), [](const Sample& a, const Sample& b) {
      return std::tuple(a.time, a.bytes < 0, a.stack, a.address) <
             std::tuple(b.time, b.bytes < 0, b.stack, b.address);
    });
    return out;
  }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;
  using Born = std::tuple<uint64_t, size_t, uint32_t>;  // interval, stack, thread
  using Lives = std::tuple<Born, uint64_t, uint32_t>;   // and the interval and thread of the free
  struct Sum {
    uint64_t bytes = 0;
    uint64_t blocks = 0;
  };

  Born key_of(const StreamedBlock& block) const {
    return {block.born >> shift_, block.stack, block.thread};
  }
  void add(const Lives& lives, uint64_t bytes) {
    Sum& sum = sums_[lives];
    sum.bytes += bytes;
    ++sum.blocks;
    while (2 * sums_.size() > most_ && shift_ < 63) widen();
  }
  void widen() {
    ++shift_;
    for (auto& [lives, sum] : std::exchange(sums_, {})) {
      auto [born, died, thread] = lives;
      std::get<0>(born) /= 2;
      Sum& wider = sums_[{born, died == kNever ? kNever : died / 2, thread}];
      wider.bytes += sum.bytes;
      wider.blocks += sum.blocks;
    }
  }

  size_t most_;
  unsigned shift_ = 0;
  std::map<Lives, Sum> sums_;
};

// Columns of numbers as text: millions of them would be much larger as JSON values.
class FirefoxSink : public EventSink {
 public:
  FirefoxSink(const Tables& tables, const StreamMeasure& measure, size_t most)
      : tables_(tables),
        track_(0, std::max<uint64_t>(measure.length / kFirefoxMoments, 1)),
        adds_up_(measure.changes > most),
        sums_(most) {}

  void allocated(uint64_t time, const StreamedBlock& block) override {
    const auto bytes = static_cast<int64_t>(block.size);
    count(time, bytes);
    if (adds_up_) return sums_.allocated(block);
    add({time, bytes, block.stack, block.address, block.thread});
  }
  void freed(uint64_t time, const StreamedBlock& block, uint32_t thread) override {
    const auto bytes = -static_cast<int64_t>(block.size);
    count(time, bytes);
    if (adds_up_) return sums_.freed(time, block, thread);
    add({time, bytes, block.stack, block.address, thread});
  }
  void thread_begins(uint64_t, const events::EventThread& thread) override {
    if (main_ == 0) main_ = thread.tid;
  }
  void marked(uint64_t time, std::string_view text) override {
    marks_.emplace_back(time, util::escaped(std::string(text), ""));
  }
  void passed(uint64_t time) override { last_ = time; }
  // Returns what was added up.
  FirefoxSums finish() {
    moment(last_);
    if (!adds_up_) return {};
    for (const Sample& one : sums_.samples()) add(one);
    return {sums_.interval(), count_};
  }

  const std::vector<std::pair<uint64_t, std::string>>& marks() const { return marks_; }
  uint32_t main_thread() const { return main_; }
  uint64_t last() const { return last_; }
  // The columns may have hundreds of megabytes.
  void write_allocations(const WriteText& write) const {
    const auto column = [&](const char* name, const std::string& values) {
      write(fmt::format("\"{}\":[", name));
      write(values);
      write("],");
    };
    write("{");
    column("time", times_);
    column("weight", weights_);
    column("stack", stacks_);
    column("memoryAddress", addresses_);
    column("threadId", threads_);
    write(fmt::format("\"weightType\":\"bytes\",\"length\":{}}}", count_));
  }
  // Of the memory track: changes of the sum.
  std::string counter() const {
    return fmt::format("{{\"length\":{},\"count\":[{}],\"number\":[{}],\"time\":[{}]}}", moments_,
                       changes_, numbers_, moment_times_);
  }

 private:
  static void put(std::string& column, const std::string& value) {
    if (!column.empty()) column += ',';
    column += value;
  }
  void count(uint64_t time, int64_t bytes) {
    track_.before(time, [this](uint64_t at) { moment(at); });
    change_ += bytes;
    ++operations_;
  }
  void add(const Sample& sample) {
    ++count_;
    put(times_, fmt::format("{}", milliseconds(sample.time)));
    put(weights_, fmt::format("{}", sample.bytes));
    put(stacks_, tables_.stack(sample.stack));
    put(addresses_, fmt::format("{}", sample.address));
    put(threads_, fmt::format("{}", sample.thread));
  }
  void moment(uint64_t time) {
    put(changes_, fmt::format("{}", std::exchange(change_, 0)));
    put(numbers_, fmt::format("{}", std::exchange(operations_, 0)));
    put(moment_times_, fmt::format("{}", milliseconds(time)));
    ++moments_;
  }

  const Tables& tables_;
  Moments track_;
  const bool adds_up_;  // all blocks are too many
  BlockSums sums_;
  uint64_t last_ = 0;
  int64_t change_ = 0;  // since the last moment, bytes
  uint64_t operations_ = 0;
  uint64_t count_ = 0;
  uint64_t moments_ = 0;
  uint32_t main_ = 0;
  std::string times_, weights_, stacks_, addresses_, threads_;
  std::string changes_, numbers_, moment_times_;
  std::vector<std::pair<uint64_t, std::string>> marks_;
};

Value meta_of(const EventStream& stream, const std::string& name) {
  Value category = {
      {"name", "Other"}, {"color", "grey"}, {"subcategories", Value::array({"Other"})}};
  return {{"categories", Value::array({std::move(category)})},
          {"debug", false},
          {"extensions",
           {{"length", 0},
            {"baseURL", Value::array()},
            {"id", Value::array()},
            {"name", Value::array()}}},
          {"interval", 1.0},
          {"preprocessedProfileVersion", kFormatVersion},
          {"processType", 0},
          {"product", name},
          {"sampleUnits", {{"time", "ms"}, {"eventDelay", "ms"}, {"threadCPUDelta", "µs"}}},
          {"startTime", milliseconds(stream.header().started)},
          {"symbolicated", true},
          {"pausedRanges", Value::array()},
          {"version", kGeckoVersion},
          {"usesOnlyOneStackType", true},
          {"sourceCodeIsNotOnSearchfox", true},
          {"markerSchema", Value::array()}};
}

Value markers_of(const FirefoxSink& sink, Tables& tables) {
  Value names = Value::array();
  Value times = Value::array();
  for (const auto& [time, text] : sink.marks()) {
    names.push_back(tables.string(text));
    times.push_back(milliseconds(time));
  }
  const size_t count = sink.marks().size();
  return {{"length", count},
          {"category", Value(count, 0)},
          {"data", Value(count, nullptr)},
          {"endTime", Value(count, nullptr)},
          {"name", std::move(names)},
          {"phase", Value(count, 0)},  // an instant
          {"startTime", std::move(times)}};
}

}  // namespace

FirefoxSums firefox_profile(const EventStream& stream, const StreamMeasure& measured,
                            const Stacks& stacks, const analyze::Table& table,
                            const WriteText& write, size_t most) {
  Tables tables(stacks, table);
  FirefoxSink sink(tables, measured, most);
  stream.replay(sink);
  const FirefoxSums sums = sink.finish();
  const std::string name = util::base_name(util::escaped(stream.header().program, ""));
  const std::string pid = std::to_string(stream.header().pid);
  Value thread = {{"name", name},
                  {"isMainThread", true},
                  {"processType", "default"},
                  {"processName", name},
                  {"processStartupTime", 0.0},
                  {"processShutdownTime", milliseconds(sink.last())},
                  {"registerTime", 0.0},
                  {"unregisterTime", milliseconds(sink.last())},
                  {"pausedRanges", Value::array()},
                  {"showMarkersInTimeline", true},
                  {"pid", pid},
                  {"tid", std::to_string(sink.main_thread())}};
  // Two samples without a stack give the thread its length on the time axis.
  thread["samples"] = {{"length", 2},
                       {"weightType", "samples"},
                       {"stack", {nullptr, nullptr}},
                       {"time", {0.0, milliseconds(sink.last())}},
                       {"weight", {1, 1}},
                       {"threadCPUDelta", {0, 0}}};
  thread["markers"] = markers_of(sink, tables);
  tables.put(thread);
  std::string front = compact(thread);
  front.pop_back();  // the bracket: the allocations follow
  write(fmt::format("{{\"meta\":{},\"libs\":{},\"pages\":[],\"profilerOverhead\":[],\"threads\":[",
                    compact(meta_of(stream, name)), compact(tables.libraries())));
  write(front);
  write(",\"nativeAllocations\":");
  sink.write_allocations(write);
  write(
      fmt::format("}}],\"counters\":[{{\"name\":\"malloc\",\"category\":\"Memory\","
                  "\"description\":\"live bytes\",\"color\":\"orange\",\"pid\":\"{}\","
                  "\"mainThreadIndex\":0,\"samples\":{}}}]}}\n",
                  pid, sink.counter()));
  return sums;
}

}  // namespace mtrace::exporting
