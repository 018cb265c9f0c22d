// The tree that a flame graph draws.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "view/export/flame_graph.h"

namespace mtrace::test {
namespace {

using exporting::flame_tree;
using exporting::FlameNode;
using exporting::Side;

analyze::Row row(int64_t bytes, const std::vector<std::string>& functions) {
  analyze::Row out;
  out.bytes = bytes;
  out.blocks = bytes < 0 ? -1 : 1;
  profile::Frames::List frames;
  for (const std::string& function : functions) {
    // Another address each: names decide.
    frames.push_back({.place = profile::Place::kAddress,
                      .module = 0,
                      .offset = static_cast<uint64_t>(bytes) + frames.size(),
                      .function = function,
                      .source = ""});
  }
  out.frames = std::move(frames);
  return out;
}

std::vector<FlameNode> tree(const std::vector<analyze::Row>& rows, double least) {
  analyze::Table table;
  for (const analyze::Row& one : rows) table.add_row(analyze::Table(), one);
  const auto side = [&](Side which) {
    return exporting::stacks_of(table, analyze::Order::kBytes, which);
  };
  return flame_tree(side(Side::kAbove), side(Side::kBelow), least);
}

// "all +60 -5 (main +60 -5 (...))"
std::string text(const std::vector<FlameNode>& nodes, size_t index = 0) {
  const FlameNode& node = nodes[index];
  std::string out = node.name;
  if (node.grew != 0) out += fmt::format(" +{}", node.grew);
  if (node.shrank != 0) out += fmt::format(" -{}", node.shrank);
  for (size_t i = 0; i < node.children.size(); ++i) {
    out += (i == 0 ? " (" : ", ") + text(nodes, node.children[i]);
  }
  return out + (node.children.empty() ? "" : ")");
}

TEST(FlameTree, FunctionsOfOneNameBelowTheSameCallerAreOne) {
  const auto nodes = tree({row(10, {"f", "g", "main"}), row(20, {"f", "g", "main"}),
                           row(40, {"g", "main"}), row(5, {"f", "main"}), row(90, {"f", "start"})},
                          0);
  EXPECT_EQ(text(nodes), "all +165 (start +90 (f +90), main +75 (g +70 (f +30), f +5))");
  EXPECT_EQ(nodes[0].blocks, 5);
}

TEST(FlameTree, WhatGrewAndWhatShrankStandBesideEachOther) {
  const auto nodes =
      tree({row(100, {"f", "main"}), row(-100, {"g", "main"}), row(-1, {"f", "main"})}, 0);
  EXPECT_EQ(text(nodes), "all +100 -101 (main +100 -101 (f +100 -1, g -100))");
  EXPECT_EQ(nodes[0].width(), 201u);
  EXPECT_EQ(nodes[0].blocks, -1);
}

TEST(FlameTree, WhatIsNarrowIsOnePlaceForEachCaller) {
  std::vector<analyze::Row> rows = {row(9000, {"wide", "main"}), row(300, {"few", "main"})};
  for (int i = 0; i < 30; ++i) rows.push_back(row(20, {fmt::format("f{}", i), "many", "main"}));
  rows.push_back(row(-100, {"less", "main"}));
  EXPECT_EQ(text(tree(rows, 0.02)),
            "all +9900 -100 (main +9900 -100 (wide +9000, many +600 (in 30 places +600), few +300, "
            "in 1 place -100))");
  EXPECT_EQ(text(tree(rows, 0.05)),
            "all +9900 -100 (main +9900 -100 (wide +9000, many +600 (in 30 places +600), in 2 "
            "places +300 -100))");
  EXPECT_EQ(text(tree(rows, 0.2)),
            "all +9900 -100 (main +9900 -100 (wide +9000, in 3 places +900 -100))");
}

TEST(FlameTree, NamesAreThoseThatPeopleWrite) {
  EXPECT_EQ(
      text(tree({row(8, {"std::vector<int, std::allocator<int> >::reserve(unsigned long)"})}, 0)),
      "all +8 (std::vector<int>::reserve(unsigned long) +8)");
}

TEST(FlameTree, OfNothingIsEmpty) { EXPECT_EQ(text(tree({}, 0.1)), "all"); }

TEST(FlameTree, ASumThatDoesNotFitIsSaid) {
  EXPECT_THROW(tree({row(INT64_MAX, {"f"}), row(INT64_MAX, {"f"}), row(INT64_MIN, {"g"})}, 0),
               std::runtime_error);
}

}  // namespace
}  // namespace mtrace::test
