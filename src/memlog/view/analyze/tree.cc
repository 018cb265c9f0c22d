#include "view/analyze/tree.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Place;

void add_numbers(Numbers& sum, const Numbers& more) { add(sum, more, Combine::kStacks); }

bool adds_up(Order order) {
  return order != Order::kLifetime && order != Order::kAge && order != Order::kSize;
}

class Builder {
 public:
  Builder(const Table& table, const TreeShape& shape) : table_(table), shape_(shape) {}

  void add_row(TreeNode& root, const Row& row) {
    std::vector<Step> frames;
    if (shape_.responsible == nullptr) {
      for (const Frame& frame : row.frames) frames.push_back({&frame, 1});
    } else {
      for (const FoldedFrame& line :
           shape_.responsible->folded(row.frames, table_.modules(), row.depth)) {
        // The responsible frame is what allocates.
        if (line.inside) continue;
        if (line.missing()) {
          frames.push_back({nullptr, row.depth});
        } else {
          frames.push_back({&row.frames[line.frame], line.frames});
        }
      }
    }
    if (row.cut) frames.push_back({nullptr, 0});
    if (shape_.inverted) std::reverse(frames.begin(), frames.end());
    TreeNode* node = &root;
    add_numbers(node->sum, row);
    for (const Step& frame : frames) {
      node = &child(*node, frame);
      add_numbers(node->sum, row);
    }
  }

 private:
  // A frame on the way from a node to the next; null: unknown, beyond the depth.
  struct Step {
    const Frame* frame;
    size_t frames;  // that it stands for; without a frame: TreeNode::depth
  };

  std::string key(const Step& step) const {
    if (step.frame == nullptr) return "..." + std::to_string(step.frames);
    const Frame& frame = *step.frame;
    std::string text = frame.function.text() + '\0' + frame.source.text();
    if (frame.function.empty() || frame.source.empty()) {
      if (frame.place == Place::kModule) text += '\0' + table_.modules()[frame.module].path;
      if (frame.function.empty()) text += '\0' + std::to_string(frame.offset);
    }
    return text;
  }

  TreeNode& child(TreeNode& parent, const Step& step) {
    auto [place, added] = children_[&parent].try_emplace(key(step), nullptr);
    if (added) {
      auto node = std::make_unique<TreeNode>();
      node->cut = step.frame == nullptr;
      if (node->cut) {
        node->depth = step.frames;
      } else {
        node->frame = *step.frame;
      }
      place->second = node.get();
      parent.children.push_back(std::move(node));
    }
    if (step.frame != nullptr) {
      place->second->frames = std::max(place->second->frames, step.frames);
    }
    return *place->second;
  }

  const Table& table_;
  const TreeShape& shape_;
  absl::flat_hash_map<const TreeNode*, absl::flat_hash_map<std::string, TreeNode*>> children_;
};

void arrange(TreeNode& node, const TreeShape& shape, double least) {
  std::unique_ptr<TreeNode> rest;
  std::vector<std::unique_ptr<TreeNode>> kept;
  for (std::unique_ptr<TreeNode>& child : node.children) {
    if (std::abs(static_cast<double>(quantity(child->sum, shape.order))) >= least) {
      kept.push_back(std::move(child));
      continue;
    }
    if (rest == nullptr) rest = std::make_unique<TreeNode>();
    ++rest->places;
    add_numbers(rest->sum, child->sum);
  }
  std::stable_sort(kept.begin(), kept.end(), [&](const auto& a, const auto& b) {
    return quantity(a->sum, shape.order) > quantity(b->sum, shape.order);
  });
  if (rest != nullptr) kept.push_back(std::move(rest));
  node.children = std::move(kept);
  for (std::unique_ptr<TreeNode>& child : node.children) arrange(*child, shape, least);
}

int64_t whole_of(const Table& table, const std::string& kind, Order order) {
  int64_t up = 0;
  int64_t down = 0;
  for (const Row& row : table.rows()) {
    if (row.kind != kind) continue;
    const int64_t value = quantity(row, order);
    if (adds_up(order)) {
      add_to(value > 0 ? up : down, value);
    } else {
      up = std::max(up, value);
    }
  }
  return up >= -down ? up : down;
}

}  // namespace

Tree make_tree(const Table& table, const std::string& kind, const TreeShape& shape) {
  Tree tree;
  Builder builder(table, shape);
  for (const Row& row : table.rows()) {
    if (row.kind == kind) builder.add_row(tree.root, row);
  }
  tree.whole = kind.empty() && shape.order == Order::kPeak && shape.peak != 0
                   ? static_cast<int64_t>(shape.peak)
                   : whole_of(table, kind, shape.order);
  arrange(tree.root, shape, std::abs(static_cast<double>(tree.whole)) * shape.threshold / 100);
  return tree;
}

}  // namespace mtrace::analyze
