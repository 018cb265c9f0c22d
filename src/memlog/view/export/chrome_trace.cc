#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "model/events/event_log.h"
#include "util/file.h"
#include "util/json.h"
#include "util/text.h"
#include "view/export/event_stream.h"

namespace mtrace::exporting {
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
