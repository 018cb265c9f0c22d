#include "json/tree.h"

#include <memory>

#include "json/stack.h"

namespace mtrace::json {
namespace {

using analyze::Table;
using analyze::TreeNode;

// As deep as stacks are: at most format::kMaxDepth frames and those inlined into them.
Value node(const Table& table, const TreeNode& from, bool root) {
  Value out = Value::object();
  if (from.cut) {
    out["cut"] = true;
  } else if (from.places != 0) {
    out["places"] = from.places;
  } else if (!root) {
    out = frame(table, from.frame);
  }
  if (from.frames > 1) out["folded_frames"] = from.frames;
  put_numbers(out, from.sum);
  if (from.children.empty()) return out;
  Value children = Value::array();
  for (const std::unique_ptr<TreeNode>& child : from.children) {
    children.push_back(node(table, *child, false));
  }
  out["children"] = std::move(children);
  return out;
}

}  // namespace

Value trees(const Table& table, const analyze::TreeShape& shape) {
  Value out = Value::array();
  for (const std::string& kind : table.kinds()) {
    Value one = {{"kind", kind.empty() ? "heap" : kind}};
    one.update(node(table, analyze::make_tree(table, kind, shape).root, true));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace mtrace::json
