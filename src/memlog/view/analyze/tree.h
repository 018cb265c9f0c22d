// Stacks as a tree: common frames are one node.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "view/analyze/responsible.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"

namespace mtrace::analyze {

struct TreeNode {
  profile::Frame frame;  // names modules of the table
  bool cut = false;      // no frame: what is beyond the depth is unknown
  size_t depth = 0;      // with `cut`: that of a stack without own code (cut_text()); 0: any other
  size_t frames = 1;     // frames that this one stands for, itself among them
  Row sum;               // only numbers
  std::vector<std::unique_ptr<TreeNode>> children;
  size_t places = 0;  // no frame: number of small children folded into this node
};

struct TreeShape {
  Order order = Order::kBytes;
  bool inverted = false;  // false: from the allocation outward; true: from main inward
  // Folds stacks: they begin with the responsible frame. Null: all frames are nodes.
  const Responsible* responsible = nullptr;
  double threshold = 1.0;  // least size of a node, in percent of `whole`
  uint64_t peak = 0;       // of the process: 100 percent of Order::kPeak
};

struct Tree {
  TreeNode root;
  int64_t whole = 0;  // the value of 100 percent
};

// Makes the tree of the rows of `kind`. Frames are equal when function and source line agree, or,
// where these are unknown, module and function or offset. Children are sorted by the order's
// quantity; those below the threshold become one node at the end. `whole` is the sum of the
// positive rows or of the negative ones, whichever is further from 0; for age and lifetime, the
// largest value; for heap blocks at the peak, `shape.peak`. Throws std::runtime_error when a sum
// does not fit 64 bits.
Tree make_tree(const Table& table, const std::string& kind, const TreeShape& shape);

}  // namespace mtrace::analyze
