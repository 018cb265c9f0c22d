// Stacks as a tree of functions, from the outermost inward: what a flame graph draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "export/stacks.h"

namespace mtrace::exporting {

struct FlameNode {
  std::string name;
  uint64_t grew = 0;             // of its stacks whose number is above 0
  uint64_t shrank = 0;           // of those below 0, by how much
  int64_t blocks = 0;            // net
  size_t places = 0;             // no function: so many that were too small to stand for themselves
  std::vector<size_t> children;  // indices, the widest first

  // What it takes of the picture. The net change would not do: it is 0 where much has moved.
  uint64_t width() const { return grew + shrank; }
};

// The first node is all stacks. Functions with one name below the same caller are one node. Names
// are as analyze::short_name has them. What is narrower than `least` of the whole is one node for
// each caller, at the end. Throws std::runtime_error when a sum does not fit 64 bits.
std::vector<FlameNode> flame_tree(const Stacks& grew, const Stacks& shrank, double least);

}  // namespace mtrace::exporting
