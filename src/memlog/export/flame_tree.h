// Stacks as a tree of functions, from the outermost inward, for flame graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "export/stacks.h"

namespace mtrace::exporting {

struct FlameNode {
  std::string name;
  uint64_t grew = 0;             // sum over its stacks above 0
  uint64_t shrank = 0;           // absolute sum over its stacks below 0
  int64_t blocks = 0;            // net
  size_t places = 0;             // no function: number of small children folded into this node
  std::vector<size_t> children;  // indices, widest first

  // Width in the picture. Not the net change: that is 0 where growth and shrinkage cancel.
  uint64_t width() const { return grew + shrank; }
};

// Returns the nodes; the first is the root of all stacks. Functions with the same name and the same
// caller are one node. Names are shortened by analyze::short_name. Nodes narrower than the fraction
// `least` of the whole become one node per caller, at the end. Throws std::runtime_error when a sum
// does not fit 64 bits.
std::vector<FlameNode> flame_tree(const Stacks& grew, const Stacks& shrank, double least);

}  // namespace mtrace::exporting
