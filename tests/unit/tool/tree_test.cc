// That a tree's branches add up.
#include <gtest/gtest.h>

#include "model/profile/reader.h"
#include "tool_test.h"
#include "view/analyze/groups.h"

namespace mtrace {
namespace {

// In the sample no stack ends where another goes on.
void expect_sums(const analyze::TreeNode& node) {
  int64_t sum = 0;
  for (const auto& child : node.children) {
    sum += child->sum.bytes;
    expect_sums(*child);
  }
  if (!node.children.empty()) {
    EXPECT_EQ(sum, node.sum.bytes);
  }
}

// Of a real shape: each level comes to what is above it, folded or not, either way round.
TEST(Tree, EachLevelAddsUp) {
  profile::Memlog memlog =
      profile::read_path(test::source_dir() + "/tests/golden/app-4900-1.memlog");
  const analyze::Table table = analyze::Table::of(memlog);
  const analyze::Responsible responsible;
  for (const bool inverted : {false, true}) {
    for (const double threshold : {0.0, 1.0, 50.0, 100.0}) {
      const analyze::Tree tree = analyze::make_tree(
          table, "",
          {analyze::Order::kBytes, inverted, threshold == 0 ? nullptr : &responsible, threshold});
      EXPECT_EQ(tree.whole, 10000);
      EXPECT_EQ(tree.root.sum.bytes, 10000);
      expect_sums(tree.root);
    }
  }
}

}  // namespace
}  // namespace mtrace
