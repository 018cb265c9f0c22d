// Stacks as a tree: what they have in common is one node.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "analyze/row.h"
#include "analyze/table.h"
#include "profile/model.h"

namespace mtrace::analyze {

struct TreeNode {
  profile::Frame frame;  // modules: those of the table
  bool cut = false;      // no frame: what lies beyond the depth is not known
  size_t hidden = 0;     // frames of the standard library within this one
  Row sum;               // numbers alone
  std::vector<std::unique_ptr<TreeNode>> children;
  size_t places = 0;  // no frame: so many children that were folded
};

struct TreeShape {
  Order order = Order::kBytes;
  bool inverted = false;   // from main inward instead of from the allocation outward
  bool full = false;       // the standard library's frames one by one
  double threshold = 1.0;  // percent of `whole` that a node needs to stand for itself
};

struct Tree {
  TreeNode root;
  int64_t whole = 0;  // 100 percent
};

// The rows of `kind`. Frames are one when function and source line agree, or module and function
// or offset as far as those are not known. Children are sorted by the order's quantity; those
// below the threshold are one node at the end. `whole` is what the rows with more than 0 come to,
// or those with less, if that is further from 0; of age and lifetime, the largest. Throws
// std::runtime_error when a sum does not fit 64 bits.
Tree make_tree(const Table& table, const std::string& kind, const TreeShape& shape);

}  // namespace mtrace::analyze
