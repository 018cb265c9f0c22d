#include "view/export/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "util/text.h"

namespace mtrace::exporting {
namespace {

constexpr uint64_t kOneIn = 100;  // Massif's own threshold

struct Node {
  uint64_t value = 0;
  std::map<size_t, Node> children;  // by location
};

std::string name_of(const Location& location) {
  std::string out = fmt::format("0x{:X}: {}", location.offset, location.function);
  if (!location.file.empty()) out += fmt::format(" ({}:{})", location.file, location.line);
  return out;
}

void write(const Stacks& stacks, const Node& node, const std::string& name, size_t depth,
           std::string& out) {
  std::vector<std::pair<const Location*, const Node*>> shown;
  uint64_t rest = 0;
  size_t places = 0;
  for (const auto& [location, child] : node.children) {
    if (static_cast<unsigned __int128>(child.value) * kOneIn >= stacks.total) {
      shown.emplace_back(&stacks.locations[location], &child);
    } else {
      rest += child.value;
      ++places;
    }
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto& a, const auto& b) { return a.second->value > b.second->value; });
  out += fmt::format("{}n{}: {} {}\n", std::string(depth, ' '), shown.size() + (places != 0),
                     node.value, name);
  for (const auto& [location, child] : shown) {
    write(stacks, *child, name_of(*location), depth + 1, out);
  }
  if (places != 0) {
    out += fmt::format("{}n0: {} in {} place{} below massif's threshold (1.00%)\n",
                       std::string(depth + 1, ' '), rest, places, places == 1 ? "," : "s, all");
  }
}

constexpr std::string_view kDetailed = "detailed";
constexpr std::string_view kPeak = "peak";

}  // namespace

Massif::Massif(const std::string& program, const std::string& column)
    : text_(fmt::format("desc: {} of memlog\ncmd: {}\ntime_unit: ms\n", column, program)) {
  sample(0, 0);
}

void Massif::head(uint64_t milliseconds, uint64_t bytes) {
  text_ += fmt::format(
      "#-----------\nsnapshot={}\n#-----------\ntime={}\nmem_heap_B={}\nmem_heap_extra_B=0\n"
      "mem_stacks_B=0\nheap_tree=",
      number_++, milliseconds, bytes);
}

void Massif::sample(uint64_t milliseconds, uint64_t bytes) {
  head(milliseconds, bytes);
  text_ += "empty\n";
}

void Massif::snapshot(uint64_t milliseconds, const Stacks& stacks) {
  Node root;
  for (const Stack& stack : stacks.stacks) {
    if (stack.value == 0) continue;
    root.value += stack.value;
    Node* node = &root;
    for (const size_t location : stack.locations) {
      node = &node->children[location];
      node->value += stack.value;
    }
  }
  head(milliseconds, stacks.total);
  if (stacks.total > largest_ || peak_at_ == 0) {
    largest_ = stacks.total;
    peak_at_ = text_.size();
  }
  text_ += fmt::format("{}\n", kDetailed);
  write(stacks, root, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.", 0, text_);
}

std::string Massif::finish() {
  if (peak_at_ != 0) text_.replace(peak_at_, kDetailed.size(), kPeak);
  peak_at_ = 0;
  return std::move(text_);
}

namespace {

using analyze::Held;

// At the peak before `now`. How often a stack had allocated and freed by then is not told: once, if
// it holds more or less than before. Any other number may leave too few for what follows the peak.
Held at_peak(const Held& before, const Held& now) {
  Held out = before;
  out.bytes = now.peak;
  if (out.bytes > before.bytes && now.allocations != before.allocations) {
    ++out.allocations;
    ++out.blocks;
  }
  if (out.bytes < before.bytes && now.frees != before.frees) {
    ++out.frees;
    --out.blocks;
  }
  return out;
}

}  // namespace

Timeline::Timeline(Format format, analyze::FrameRange range, std::optional<Ids> chosen)
    : format_(format),
      chosen_(std::move(chosen)),
      series_(range),
      locations_(series_.table(), stacks_.locations, nullptr) {}

void Timeline::begin(const profile::Header& header) {
  const std::string program = util::escaped(header.program, "");
  if (format_ == Format::kMassif) {
    massif_ = std::make_unique<Massif>(program, "bytes");
  } else {
    heaptrack_ = std::make_unique<Heaptrack>(program, series_.table(), stacks_.locations);
  }
}

void Timeline::take_new_stacks() {
  const std::vector<analyze::Row>& rows = series_.table().rows();
  while (stacks_.stacks.size() < rows.size()) {
    stacks_.stacks.push_back({nullptr, locations_.of(rows[stacks_.stacks.size()]), {}, 0});
  }
}

void Timeline::add(const profile::Memlog& memlog) {
  const profile::Header& header = memlog.header;
  if (massif_ == nullptr && heaptrack_ == nullptr) begin(header);
  series_.add(memlog, true);
  take_new_stacks();
  std::vector<Held> held;
  for (size_t i = 0; i < stacks_.stacks.size(); ++i) held.push_back(series_.held(i));
  const double seconds = std::strtod(header.uptime.c_str(), nullptr);
  const auto now = std::max(static_cast<uint64_t>(std::llround(seconds * 1000)), last_ + 1);
  const auto live = static_cast<uint64_t>(std::max<int64_t>(header.live.bytes, 0));
  if (series_.peak_moved() && header.peak->bytes > live) {
    before_.resize(held.size());
    std::vector<Held> peak;
    for (size_t i = 0; i < held.size(); ++i) peak.push_back(at_peak(before_[i], held[i]));
    const double since = util::seconds_of(header.peak->time) - util::seconds_of(header.started);
    const auto when = static_cast<uint64_t>(std::max(0.0, since * 1000));
    const uint64_t at = std::clamp(when, last_, now - 1);
    show_samples(at);
    moment(at, std::move(peak), 0);
    last_ = at;
  }
  show_samples(now);
  moment(now, held, header.rss.value_or(0));
  before_ = held;
  last_ = now;
}

void Timeline::show(profile::Timeline samples) {
  if (format_ == Format::kMassif && !chosen_) samples_ = std::move(samples);
}

// Writes the samples after the last moment and before `until`.
void Timeline::show_samples(uint64_t until) {
  for (; shown_ < samples_.samples.size(); ++shown_) {
    const profile::Sample& sample = samples_.samples[shown_];
    if (sample.milliseconds >= until) return;
    if (sample.milliseconds > last_) {
      massif_->sample(sample.milliseconds, sample.live);
    }
  }
}

void Timeline::moment(uint64_t milliseconds, std::vector<Held> held, uint64_t rss) {
  const std::vector<analyze::Row>& rows = series_.table().rows();
  stacks_.total = 0;
  for (size_t i = 0; i < held.size(); ++i) {
    const bool other = chosen_ && !chosen_->contains(rows[i].stack);
    if (other || !rows[i].kind.empty()) held[i] = {};
    const uint64_t bytes = static_cast<uint64_t>(std::max<int64_t>(held[i].bytes, 0));
    stacks_.stacks[i].value = bytes;
    analyze::add_to(stacks_.total, bytes);
  }
  if (massif_ != nullptr) {
    massif_->snapshot(milliseconds, stacks_);
  } else {
    heaptrack_->moment(milliseconds, stacks_.stacks, held, rss);
  }
}

std::string Timeline::finish() {
  return massif_ != nullptr ? massif_->finish() : heaptrack_->finish();
}

}  // namespace mtrace::exporting
