#include "view/text/tree_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/memlog.h"
#include "util/columns.h"
#include "util/text.h"
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
constexpr size_t kLeastFunction = 16;  // columns

bool has_share(Order order) {
  return order != Order::kLifetime && order != Order::kAge && order != Order::kSize;
}

class Printer {
 public:
  Printer(const Table& table, const Tree& tree, const Style& style)
      : table_(table), tree_(tree), style_(style) {
    narrow_ = style.narrow(width() + kStep);
    if (narrow_) number_ = 11;
  }

  std::string text() {
    out_ = coloured(titles(), kFaint, style_) + '\n';
    out_ +=
        numbers(tree_.root.sum) + std::string(kStep, ' ') + coloured("all", kBold, style_) + '\n';
    branches(tree_.root, 0);
    return std::move(out_);
  }

 private:
  // The largest is 14 columns wide, as in memlog show --oneline. Where that leaves names too little
  // room, only the number that orders the tree is shown.
  std::string titles() const {
    std::string out;
    const bool blocks_first = style_.order == Order::kBlocks;
    if (lead_first()) out += fmt::format("{:>{}} ", lead_title(), number_);
    if (!narrow_ || !lead_first()) {
      out += fmt::format("{:>{}}", blocks_first ? "blocks" : "bytes", number_);
    }
    if (!narrow_) out += fmt::format(" {:>10}", blocks_first ? "bytes" : "blocks");
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
      out += coloured(fmt::format("{:>{}} ", lead_column(row, style_), number_), kBold, style_);
    }
    const bool blocks_first = style_.order == Order::kBlocks;
    const std::string number =
        style_.units ? bytes_text(row.bytes, style_) : fmt::format("{:+}", row.bytes);
    const char* colour = row.bytes > 0 ? kRed : row.bytes < 0 ? kGreen : kFaint;
    const std::string bytes =
        coloured(fmt::format("{:>{}}", number, blocks_first ? 10 : number_), colour, style_);
    const std::string blocks = fmt::format("{:>+{}}", row.blocks, blocks_first ? number_ : 10);
    if (!narrow_ || !lead_first()) out += blocks_first ? blocks : bytes;
    if (!narrow_) out += ' ' + (blocks_first ? bytes : blocks);
    if (has_share(style_.order)) out += fmt::format(" {:>7}", share(row));
    return out;
  }

  size_t width() const {
    const size_t first = (lead_first() ? number_ + 1 : 0) + (has_share(style_.order) ? 8 : 0);
    return first + (narrow_ ? (lead_first() ? 0 : number_) : number_ + 11);
  }

  void line(const std::string& numbers, size_t level, const TreeNode& node) {
    size_t indent = kStep * (level + 1);
    if (style_.columns != 0) {  // leaves room for a name
      const size_t least = width() + kLeastFunction;
      indent = std::min(indent, std::max(style_.columns, least + kStep) - least);
    }
    out_ += numbers + std::string(indent, ' ') + name(node, width() + indent) + '\n';
  }

  // Behind so many columns.
  std::string name(const TreeNode& node, size_t before) const {
    if (node.cut) return node.depth == 0 ? format::kCutLine : analyze::cut_text(node.depth);
    if (node.places != 0) {
      return coloured(fmt::format("in {} {}", util::grouped(uint64_t{node.places}),
                                  node.places == 1 ? "place" : "places"),
                      kFaint, style_);
    }
    const std::string function = function_text(table_, node.frame, style_);
    if (style_.columns != 0 && before + util::columns_of(function) > style_.columns) {
      return util::cut_middle(function, std::max(style_.columns, before + kLeastFunction) - before);
    }
    return node.frames == 1 ? frame_text(table_, node.frame, style_)
                            : run_text(table_, node.frame, node.frames, style_);
  }

  // The children of `node` and what is below them.
  void branches(const TreeNode& node, size_t level) {
    for (const auto& first : node.children) {
      line(numbers(first->sum), level, *first);
      const TreeNode* last = first.get();
      // What goes on without branching, and without anything that ends here.
      while (last->children.size() == 1 && same(last->sum, last->children[0]->sum)) {
        last = last->children[0].get();
        line(std::string(width(), ' '), level, *last);
      }
      branches(*last, level + 1);
    }
  }

  static bool same(const Row& a, const Row& b) {
    return a.bytes == b.bytes && a.blocks == b.blocks && a.allocations == b.allocations &&
           a.frees == b.frees && a.live == b.live && a.peak == b.peak;
  }

  const Table& table_;
  const Tree& tree_;
  const Style& style_;
  size_t number_ = 14;  // columns of the first number
  bool narrow_ = false;
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
