#include "export/flame_tree.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "analyze/short_name.h"
#include "profile/text.h"

namespace mtrace::exporting {
namespace {

class Grower {
 public:
  Grower() : nodes_(1) { nodes_[0].name = "all"; }

  void add(const Stacks& stacks, uint64_t FlameNode::*side) {
    std::vector<std::string> names;  // by location
    names.reserve(stacks.locations.size());
    for (const Location& location : stacks.locations) {
      names.push_back(analyze::short_name(location.function));
    }
    for (const Stack& stack : stacks.stacks) {
      size_t node = 0;
      add(node, stack, side);
      for (size_t i = stack.locations.size(); i-- > 0;) {
        node = child(node, names[stack.locations[i]]);
        add(node, stack, side);
      }
    }
  }

  std::vector<FlameNode>& nodes() { return nodes_; }

 private:
  // No sum here exceeds those of the first node.
  void add(size_t node, const Stack& stack, uint64_t FlameNode::*side) {
    FlameNode& to = nodes_[node];
    uint64_t width = 0;
    if (__builtin_add_overflow(to.width(), stack.value, &width) ||
        __builtin_add_overflow(to.blocks, stack.row->blocks, &to.blocks)) {
      throw std::runtime_error("a sum does not fit 64 bits");
    }
    to.*side += stack.value;
  }

  size_t child(size_t node, const std::string& name) {
    const auto [place, added] = known_.try_emplace({node, name}, nodes_.size());
    if (added) {
      nodes_[node].children.push_back(nodes_.size());
      nodes_.emplace_back().name = name;
    }
    return place->second;
  }

  std::vector<FlameNode> nodes_;
  absl::flat_hash_map<std::pair<size_t, std::string>, size_t> known_;
};

// The children below `least` become one, which takes the place of the first of them.
void fold(std::vector<FlameNode>& nodes, size_t node, double least) {
  std::vector<size_t>& children = nodes[node].children;
  const auto is_wide = [&](size_t child) {
    return static_cast<double>(nodes[child].width()) >= least;
  };
  const auto narrow = std::stable_partition(children.begin(), children.end(), is_wide);
  std::sort(children.begin(), narrow, [&](size_t a, size_t b) {
    if (nodes[a].width() != nodes[b].width()) return nodes[a].width() > nodes[b].width();
    return nodes[a].name < nodes[b].name;
  });
  if (narrow == children.end()) return;
  FlameNode rest;
  for (auto child = narrow; child != children.end(); ++child) {
    rest.grew += nodes[*child].grew;
    rest.shrank += nodes[*child].shrank;
    rest.blocks += nodes[*child].blocks;
    ++rest.places;
  }
  rest.name = fmt::format("in {} {}", profile::grouped(uint64_t{rest.places}),
                          rest.places == 1 ? "place" : "places");
  const size_t place = *narrow;
  children.erase(narrow + 1, children.end());
  nodes[place] = std::move(rest);
}

}  // namespace

std::vector<FlameNode> flame_tree(const Stacks& grew, const Stacks& shrank, double least) {
  Grower grower;
  grower.add(grew, &FlameNode::grew);
  grower.add(shrank, &FlameNode::shrank);
  std::vector<FlameNode>& nodes = grower.nodes();
  const double narrow = least * static_cast<double>(nodes[0].width());
  // Callers stand before what they call, so what is folded away may be folded, too, to no effect.
  for (size_t node = 0; node < nodes.size(); ++node) fold(nodes, node, narrow);
  return std::move(nodes);
}

}  // namespace mtrace::exporting
