#include "view/text/tree_text.h"

#include <fmt/format.h>

#include "format/memlog.h"
#include "util/columns.h"
#include "util/text.h"
#include "view/analyze/cut_depth.h"
#include "view/text/frame_text.h"
#include "view/text/report_text.h"

namespace mtrace::text {
namespace {

using analyze::Order;
using analyze::Row;
using analyze::Table;
using analyze::Tree;
using analyze::TreeNode;

constexpr size_t kStep = 2;

bool has_share(Order order) {
  return order != Order::kLifetime && order != Order::kAge && order != Order::kSize;
}

class Printer {
 public:
  Printer(const Table& table, const Tree& tree, const Style& style)
      : table_(table), tree_(tree), style_(style) {}

  std::string text() {
    out_ = coloured(titles(), kFaint, style_) + '\n';
    line(tree_.root.sum, 0, coloured("all", kBold, style_));
    branches(tree_.root, 0);
    return std::move(out_);
  }

 private:
  // The largest is 14 columns wide, as in memlog show --oneline.
  std::string titles() const {
    std::string out;
    if (lead_first()) out += fmt::format("{:>14} ", lead_title());
    const bool blocks_first = style_.order == Order::kBlocks;
    out += fmt::format("{:>14} {:>10}", blocks_first ? "blocks" : "bytes",
                       blocks_first ? "bytes" : "blocks");
    if (has_share(style_.order)) out += fmt::format(" {:>7}", "share");
    return out;
  }

  bool lead_first() const {
    return style_.order != Order::kBytes && style_.order != Order::kBlocks;
  }

  const char* lead_title() const {
    switch (style_.order) {
      case Order::kLive:
        return "live";
      case Order::kAllocations:
        return "allocs";
      case Order::kTemporary:
        return "temporary";
      case Order::kLifetime:
        return "lifetime";
      case Order::kSlack:
        return "slack";
      case Order::kPeak:
        return "peak";
      case Order::kFailed:
        return "failed";
      case Order::kAge:
        return "age";
      case Order::kSize:
        return "size";
      default:
        return "";
    }
  }

  std::string share(const Row& row) const {
    const int64_t value = analyze::quantity(row, style_.order);
    if (tree_.whole == 0) return {};
    return fmt::format(
        "{:.1f}%", 100.0 * static_cast<double>(value) / std::abs(static_cast<double>(tree_.whole)));
  }

  std::string numbers(const Row& row) const {
    std::string out;
    if (lead_first()) {
      out += coloured(fmt::format("{:>14} ", lead_column(row, style_)), kBold, style_);
    }
    const std::string bytes =
        style_.units ? bytes_text(row.bytes, style_) : fmt::format("{:+}", row.bytes);
    const char* colour = row.bytes > 0 ? kRed : row.bytes < 0 ? kGreen : kFaint;
    if (style_.order == Order::kBlocks) {
      out += fmt::format("{:>+14} ", row.blocks) +
             coloured(fmt::format("{:>10}", bytes), colour, style_);
    } else {
      out += coloured(fmt::format("{:>14}", bytes), colour, style_) +
             fmt::format(" {:>+10}", row.blocks);
    }
    if (has_share(style_.order)) out += fmt::format(" {:>7}", share(row));
    return out;
  }

  size_t width() const { return (lead_first() ? 15 : 0) + 25 + (has_share(style_.order) ? 8 : 0); }

  void line(const Row& row, size_t indent, const std::string& name) {
    out_ += numbers(row) + std::string(kStep + indent, ' ') + name + '\n';
  }

  std::string name(const TreeNode& node) const {
    if (node.cut) return node.depth == 0 ? format::kCutLine : analyze::cut_text(node.depth);
    if (node.places != 0) {
      return coloured(fmt::format("in {} {}", util::grouped(uint64_t{node.places}),
                                  node.places == 1 ? "place" : "places"),
                      kFaint, style_);
    }
    return node.frames == 1 ? frame_text(table_, node.frame, style_)
                            : run_text(table_, node.frame, node.frames, style_);
  }

  // The children of `node` and what is below them, `indent` columns in.
  void branches(const TreeNode& node, size_t indent) {
    for (const auto& first : node.children) {
      line(first->sum, indent, name(*first));
      const TreeNode* last = first.get();
      // What goes on without branching, and without anything that ends here.
      while (last->children.size() == 1 && same(last->sum, last->children[0]->sum)) {
        last = last->children[0].get();
        out_ += std::string(width() + kStep + indent, ' ') + name(*last) + '\n';
      }
      branches(*last, indent + kStep);
    }
  }

  static bool same(const Row& a, const Row& b) {
    return a.bytes == b.bytes && a.blocks == b.blocks && a.allocations == b.allocations &&
           a.frees == b.frees && a.live == b.live && a.peak == b.peak;
  }

  const Table& table_;
  const Tree& tree_;
  const Style& style_;
  std::string out_;
};

}  // namespace

std::string trees_text(const Table& table, const analyze::TreeShape& shape, const Context& context,
                       const Style& style) {
  std::string out;
  for (const std::string& kind : table.kinds()) {
    if (!kind.empty()) out += kind_title(kind, style);
    const Tree tree = analyze::make_tree(table, kind, shape);
    out += util::cut_lines(Printer(table, tree, style).text(), style.columns);
  }
  return out + remarks_text(context, style);
}

}  // namespace mtrace::text
