#include "export/massif.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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
    if (child.value * kOneIn >= stacks.total) {
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

std::string snapshot(int number, uint64_t time, uint64_t bytes, const char* tree) {
  return fmt::format(
      "#-----------\nsnapshot={}\n#-----------\ntime={}\nmem_heap_B={}\nmem_heap_extra_B=0\n"
      "mem_stacks_B=0\nheap_tree={}\n",
      number, time, bytes, tree);
}

}  // namespace

std::string massif(const Stacks& stacks, uint64_t milliseconds) {
  Node root;
  for (const Stack& stack : stacks.stacks) {
    root.value += stack.value;
    Node* node = &root;
    for (const size_t location : stack.locations) {
      node = &node->children[location];
      node->value += stack.value;
    }
  }
  std::string out =
      fmt::format("desc: {} of memlog\ncmd: {}\ntime_unit: ms\n", stacks.column, stacks.program);
  out += snapshot(0, 0, 0, "empty");
  out += snapshot(1, milliseconds, stacks.total, "peak");
  write(stacks, root, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.", 0, out);
  return out;
}

}  // namespace mtrace::exporting
