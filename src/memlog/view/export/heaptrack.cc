#include "view/export/heaptrack.h"

#include "util/text.h"

namespace mtrace::exporting {
namespace {

constexpr uint64_t kHeaptrackPage = 4096;

int64_t total(const std::vector<analyze::Held>& held) {
  int64_t sum = 0;
  for (const analyze::Held& one : held) sum += one.bytes;
  return sum;
}

}  // namespace

struct Heaptrack::Change {
  size_t trace = 0;
  // Of blocks that stay, and of blocks that were there before.
  uint64_t grown = 0;
  uint64_t grown_bytes = 0;
  uint64_t gone = 0;
  uint64_t gone_bytes = 0;
  // Allocated and freed again; temporary ones without another allocation in between.
  uint64_t temporary = 0;
  uint64_t passing = 0;
  uint64_t average = 0;  // bytes
};

Heaptrack::Heaptrack(const std::string& program, const analyze::Table& table,
                     const std::vector<Location>& locations)
    : table_(table), locations_(locations), sites_(locations) {
  text_ = fmt::format("v 10400 3\nX {}\nI {:x} 0\n", program, kHeaptrackPage);
}

void Heaptrack::moment(uint64_t milliseconds, const std::vector<Stack>& stacks,
                       const std::vector<analyze::Held>& held, uint64_t rss) {
  std::vector<Change> changes;
  int64_t low = 0;
  for (const Known& known : known_) low += known.held.bytes;
  highest_ = std::max(highest_, total(held));
  for (size_t i = 0; i < held.size(); ++i) {
    if (i == known_.size()) known_.push_back({trace(stacks[i].locations), {}});
    changes.push_back(change(known_[i], held[i]));
    low -= static_cast<int64_t>(changes.back().gone_bytes);
    known_[i].held = held[i];
  }
  fmt::format_to(std::back_inserter(text_), "c {:x}\n", milliseconds);
  for (const Change& one : changes) spread('-', one.trace, one.gone, one.gone_bytes);
  pass(changes, static_cast<uint64_t>(highest_ - low));
  for (const Change& one : changes) spread('+', one.trace, one.grown, one.grown_bytes);
  if (rss != 0) fmt::format_to(std::back_inserter(text_), "R {:x}\n", rss / kHeaptrackPage);
}

void Heaptrack::time(uint64_t milliseconds) {
  if (milliseconds == time_) return;
  time_ = milliseconds;
  fmt::format_to(std::back_inserter(text_), "c {:x}\n", milliseconds);
}

void Heaptrack::event(uint64_t milliseconds, bool allocates, size_t number, const Stack& stack,
                      uint64_t bytes) {
  time(milliseconds);
  if (number >= event_traces_.size()) event_traces_.resize(number + 1);
  size_t& known = event_traces_[number];
  if (known == 0) known = trace(stack.locations);
  events(allocates ? '+' : '-', info(known, bytes), 1);
}

void Heaptrack::resident(uint64_t milliseconds, uint64_t bytes) {
  time(milliseconds);
  fmt::format_to(std::back_inserter(text_), "R {:x}\n", bytes / kHeaptrackPage);
}

std::string Heaptrack::finish() {
  std::string text = std::move(text_);
  text_.clear();
  return text;
}

// The fewest calls that lead from one to the other, and those that left nothing.
Heaptrack::Change Heaptrack::change(const Known& known, const analyze::Held& now) const {
  const analyze::Held& before = known.held;
  const int64_t bytes = now.bytes - before.bytes;
  const int64_t blocks = now.blocks - before.blocks;
  Change out;
  out.trace = known.trace;
  out.grown = static_cast<uint64_t>(std::max<int64_t>(blocks, 0));
  out.gone = static_cast<uint64_t>(std::max<int64_t>(-blocks, 0));
  // More bytes in fewer blocks: one came that is so large.
  const uint64_t more = (bytes > 0 && out.grown == 0) || (bytes < 0 && out.gone == 0) ? 1 : 0;
  out.grown += more;
  out.gone += more;
  (bytes > 0 ? out.grown_bytes : out.gone_bytes) = static_cast<uint64_t>(std::abs(bytes));
  const uint64_t allocations = now.allocations - before.allocations;
  const uint64_t both = std::min(allocations, now.frees - before.frees);
  const uint64_t rest = both - std::min(both, more);
  out.temporary = std::min(rest, now.temporary - before.temporary);
  out.passing = rest - out.temporary;
  if (allocations != 0) out.average = (now.allocated_bytes - before.allocated_bytes) / allocations;
  return out;
}

// A free counts as temporary when the allocation before it had the same size and stack. So each
// block but the temporary ones outlives the next; at most two are there at once, in `room` bytes. A
// single one that passes cannot be told from a temporary one.
void Heaptrack::pass(const std::vector<Change>& changes, uint64_t room) {
  Info last = 0;
  bool open = false;
  bool other = false;
  for (const Change& one : changes) {
    const uint64_t size = std::min(one.average, room / 2);
    if (one.temporary != 0) {
      const Info here = info(one.trace, size);
      for (uint64_t i = 0; i < one.temporary; ++i) {
        events('+', here, 1);
        events('-', here, 1);
      }
    }
    for (uint64_t i = 0; i < one.passing; ++i) {
      other = !other;
      const Info here = info(one.trace, size, other);
      events('+', here, 1);
      if (open) events('-', last, 1);
      last = here;
      open = true;
    }
  }
  if (open) events('-', last, 1);
}

void Heaptrack::spread(char sign, size_t trace, uint64_t count, uint64_t bytes) {
  if (count == 0) return;
  const uint64_t larger = bytes % count;
  if (larger != 0) events(sign, info(trace, bytes / count + 1), larger);
  if (larger != count) events(sign, info(trace, bytes / count), count - larger);
}

void Heaptrack::events(char sign, Info info, uint64_t count) {
  const std::string line = fmt::format("{} {:x}\n", sign, info);
  for (uint64_t i = 0; i < count; ++i) text_ += line;
}

// `other`: one that is told apart from those of the same size.
Heaptrack::Info Heaptrack::info(size_t trace, uint64_t size, bool other) {
  // A free of number 0 would be taken for temporary behind any other free.
  if (infos_.empty()) {
    infos_[{0, 0, false}] = 0;
    fmt::format_to(std::back_inserter(text_), "a 0 {:x}\n", trace);
  }
  const auto [place, added] = infos_.try_emplace({trace, size, other}, infos_.size());
  if (added) fmt::format_to(std::back_inserter(text_), "a {:x} {:x}\n", size, trace);
  return place->second;
}

// Strings, sites and traces are numbered from 1; 0 is none.
size_t Heaptrack::string(const std::string& text) {
  if (text.empty()) return 0;
  const auto [place, added] = strings_.try_emplace(text, strings_.size() + 1);
  if (added) fmt::format_to(std::back_inserter(text_), "s {:x} {}\n", text.size(), text);
  return place->second;
}

void Heaptrack::site(const Site& site) {
  uint64_t address = site.offset;
  size_t module = 0;
  if (site.module != Location::kNoModule) {
    const profile::Module& found = table_.modules()[site.module];
    address += found.base;
    module = string(util::escaped(found.path, ""));
  }
  std::string line = fmt::format("i {:x} {:x}", address, module);
  for (const size_t index : site.lines) {
    const Location& location = locations_[index];
    const size_t function = string(location.function);
    line += fmt::format(" {:x} {:x} {:x}", function, string(location.file), location.line);
  }
  text_ += line + '\n';
}

size_t Heaptrack::trace(const std::vector<size_t>& locations) {
  const std::vector<size_t> sites = sites_.of(locations);
  for (; written_ < sites_.all().size(); ++written_) site(sites_.all()[written_]);
  size_t caller = 0;
  for (size_t i = sites.size(); i-- > 0;) {
    const auto [place, added] = traces_.try_emplace({sites[i] + 1, caller}, traces_.size() + 1);
    if (added) fmt::format_to(std::back_inserter(text_), "t {:x} {:x}\n", sites[i] + 1, caller);
    caller = place->second;
  }
  return caller;
}

std::string heaptrack(const Stacks& stacks, const analyze::Table& table, uint64_t milliseconds) {
  std::vector<analyze::Held> held;
  for (const Stack& stack : stacks.stacks) {
    analyze::Held one;
    one.bytes = static_cast<int64_t>(stack.value);
    if (stacks.column == "bytes") {
      const analyze::Row& row = *stack.row;
      one.blocks = row.blocks;
      one.allocations = row.allocations;
      one.allocated_bytes = row.allocated_bytes;
      one.frees = row.frees;
      one.temporary = row.temporary;
      // Blocks of earlier reports that are gone are no blocks of this profile.
      if (stack.value == 0) one.blocks = std::max<int64_t>(one.blocks, 0);
    }
    held.push_back(one);
  }
  Heaptrack out(stacks.program, table, stacks.locations);
  out.moment(milliseconds, stacks.stacks, held, 0);
  return out.finish();
}

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

TimedExport::TimedExport(Format format, analyze::FrameRange range, std::optional<Ids> chosen)
    : format_(format),
      chosen_(std::move(chosen)),
      series_(range),
      locations_(series_.table(), stacks_.locations, nullptr) {}

void TimedExport::begin(const profile::Header& header) {
  const std::string program = util::escaped(header.program, "");
  if (format_ == Format::kMassif) {
    massif_ = std::make_unique<Massif>(program, "bytes");
  } else {
    heaptrack_ = std::make_unique<Heaptrack>(program, series_.table(), stacks_.locations);
  }
}

void TimedExport::take_new_stacks() {
  const std::vector<analyze::Row>& rows = series_.table().rows();
  while (stacks_.stacks.size() < rows.size()) {
    stacks_.stacks.push_back({nullptr, locations_.of(rows[stacks_.stacks.size()]), {}, 0});
  }
}

void TimedExport::add(const profile::Memlog& memlog) {
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

void TimedExport::show(profile::Timeline samples) {
  if (format_ == Format::kMassif && !chosen_) samples_ = std::move(samples);
}

// Writes the samples after the last moment and before `until`.
void TimedExport::show_samples(uint64_t until) {
  for (; shown_ < samples_.samples.size(); ++shown_) {
    const profile::Sample& sample = samples_.samples[shown_];
    if (sample.milliseconds >= until) return;
    if (sample.milliseconds > last_) {
      massif_->sample(sample.milliseconds, sample.live);
    }
  }
}

void TimedExport::moment(uint64_t milliseconds, std::vector<Held> held, uint64_t rss) {
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

std::string TimedExport::finish() {
  return massif_ != nullptr ? massif_->finish() : heaptrack_->finish();
}

}  // namespace mtrace::exporting
