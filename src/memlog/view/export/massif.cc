#include "view/export/massif.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace mtrace::exporting
