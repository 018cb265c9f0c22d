#include "view/export/lives.h"

#include <algorithm>
#include <utility>

namespace mtrace::exporting {
namespace {

constexpr uint64_t kMostIntervals = 200;
constexpr size_t kMostLives = 400'000;

class LivesSink : public EventSink {
 public:
  LivesSink(const std::vector<uint64_t>& stacks, const StreamMeasure& measure)
      : stacks_(stacks),
        peak_change_(measure.peak_change),
        by_stack_(stacks.size()),
        sizes_(stacks.size()) {
    out_.step = measure.length / kMostIntervals + 1;
    out_.count = static_cast<uint32_t>(measure.length / out_.step + 1);
    out_.samples.resize(out_.count);
  }

  void allocated(uint64_t time, const StreamedBlock& block) override {
    advance(time);
    live_ += block.size;
    most_ = std::max(most_, live_);
    analyze::SizeClass& sum = sizes_[block.stack][analyze::SizeHistogram::class_of(block.size)];
    ++sum.blocks;
    sum.bytes += block.size;
    if (++changes_ == peak_change_) out_.at_peak = sizes();
    add(block, interval_of_birth(block), Lives::kNever);
    if (lives_ > kMostLives) halve();
  }
  void freed(uint64_t time, const StreamedBlock& block, uint32_t) override {
    advance(time);
    live_ -= block.size;
    ++changes_;
    const auto sum = sizes_[block.stack].find(analyze::SizeHistogram::class_of(block.size));
    sum->second.bytes -= block.size;
    if (--sum->second.blocks == 0) sizes_[block.stack].erase(sum);
    const uint32_t born = interval_of_birth(block);
    const auto never = by_stack_[block.stack].find({born, Lives::kNever});
    never->second.bytes -= block.size;
    if (--never->second.blocks == 0) {
      by_stack_[block.stack].erase(never);
      --lives_;
    }
    add(block, born, interval(time));
    if (lives_ > kMostLives) halve();
  }
  void resident(uint64_t time, uint64_t bytes) override {
    advance(time);
    resident_ = bytes;
  }

  Lives take() {
    advance(out_.step * out_.count);
    out_.at_end = sizes();
    for (size_t i = 0; i < by_stack_.size(); ++i) {
      std::vector<Life>& lives = out_.stacks[stacks_[i]];
      for (const auto& [when, sum] : by_stack_[i]) {
        lives.push_back({when.first, when.second, sum.bytes, sum.blocks});
      }
      std::sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
        return std::pair(a.born, a.died) < std::pair(b.born, b.died);
      });
    }
    return std::move(out_);
  }

 private:
  struct Sum {
    uint64_t bytes = 0;
    uint64_t blocks = 0;
  };
  using When = std::pair<uint32_t, uint32_t>;  // born, died
  using Sums = absl::flat_hash_map<When, Sum>;

  StackSizes sizes() const {
    StackSizes out;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (!sizes_[i].empty()) out[stacks_[i]] = sizes_[i];
    }
    return out;
  }
  uint32_t interval(uint64_t time) const { return static_cast<uint32_t>(time / out_.step); }
  uint32_t interval_of_birth(const StreamedBlock& block) const {
    return block.inherited ? Lives::kBefore : interval(block.born);
  }
  void add(const StreamedBlock& block, uint32_t born, uint32_t died) {
    const auto [place, added] = by_stack_[block.stack].try_emplace({born, died});
    place->second.bytes += block.size;
    ++place->second.blocks;
    lives_ += added;
  }
  // The intervals before that of `time` are over.
  void advance(uint64_t time) {
    for (const uint32_t end = std::min(interval(time), out_.count); at_ < end; ++at_) {
      out_.samples[at_] = {most_, resident_};
      most_ = live_;
    }
  }
  // Makes one interval of two.
  void halve() {
    if (out_.count == 1) return;
    const auto half = [](uint32_t number) {
      return number >= Lives::kBefore ? number : number / 2;
    };
    out_.step *= 2;
    for (uint32_t i = 0; i < out_.count; ++i) {
      Lives::Sample& to = out_.samples[i / 2];
      const Lives::Sample from = out_.samples[i];
      to = i % 2 == 0 ? from : Lives::Sample{std::max(to.live, from.live), from.resident};
    }
    if (at_ % 2 != 0) most_ = std::max(most_, out_.samples[at_ / 2].live);
    out_.count = (out_.count + 1) / 2;
    out_.samples.resize(out_.count);
    at_ /= 2;
    lives_ = 0;
    for (Sums& sums : by_stack_) {
      Sums halved;
      for (const auto& [when, sum] : sums) {
        Sum& to = halved[{half(when.first), half(when.second)}];
        to.bytes += sum.bytes;
        to.blocks += sum.blocks;
      }
      sums = std::move(halved);
      lives_ += sums.size();
    }
  }

  const std::vector<uint64_t>& stacks_;
  const uint64_t peak_change_;
  uint64_t changes_ = 0;
  std::vector<Sums> by_stack_;
  std::vector<SizeClasses> sizes_;  // of what is live, by stack
  size_t lives_ = 0;                // in all of them
  uint32_t at_ = 0;                 // the interval under way
  uint64_t live_ = 0;
  uint64_t most_ = 0;  // in it
  uint64_t resident_ = 0;
  Lives out_;
};

}  // namespace

Lives lives_of(const EventStream& stream) {
  LivesSink sink(stream.stacks(), measure(stream));
  stream.replay(sink);
  Lives lives = sink.take();
  const events::EventHeader& header = stream.header();
  if (header.process_started != 0) {
    lives.first = static_cast<int64_t>(header.started - header.process_started);
  }
  return lives;
}

}  // namespace mtrace::exporting
