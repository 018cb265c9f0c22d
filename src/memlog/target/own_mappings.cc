#include "target/own_mappings.h"

#include <algorithm>

#include "format/ledger.h"
#include "target/process.h"

namespace mtrace::target {
namespace {

using format::LedgerRegion;
using format::LedgerRegionTree;

constexpr uint32_t kMost = 1u << 20;  // nodes
constexpr int kTries = 5;

// Follows a tree whose indexes may be anything.
std::vector<OwnMapping> in_tree(const std::vector<LedgerRegion>& nodes, uint32_t root) {
  std::vector<OwnMapping> found;
  std::vector<bool> seen(nodes.size());
  std::vector<uint32_t> left = {root};
  while (!left.empty()) {
    const uint32_t index = left.back();
    left.pop_back();
    if (index == 0 || index >= nodes.size() || seen[index]) continue;
    seen[index] = true;
    const LedgerRegion& node = nodes[index];
    found.push_back({node.start, node.end, node.stack});
    left.push_back(node.left);
    left.push_back(node.right);
  }
  std::sort(found.begin(), found.end(),
            [](const OwnMapping& a, const OwnMapping& b) { return a.begin < b.begin; });
  return found;
}

}  // namespace

std::vector<OwnMapping> own_mappings(pid_t pid, const live::LedgerFile& ledger) {
  const uint64_t place = ledger.header().regions;
  std::vector<LedgerRegion> nodes;
  for (int tries = 0; place != 0 && tries < kTries; ++tries) {
    LedgerRegionTree tree = {};
    LedgerRegionTree after = {};
    if (!read_memory(pid, place, &tree, sizeof tree) || tree.nodes == 0) return {};
    nodes.resize(std::min(tree.used, kMost) + 1);
    if (!read_memory(pid, tree.nodes, nodes.data(), nodes.size() * sizeof nodes[0]) ||
        !read_memory(pid, place, &after, sizeof after)) {
      return {};
    }
    if (after.root == tree.root && after.used == tree.used) return in_tree(nodes, tree.root);
  }
  return {};
}

}  // namespace mtrace::target
