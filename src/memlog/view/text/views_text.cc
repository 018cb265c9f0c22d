#include "view/text/views_text.h"

#include "format/memlog.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/function_name.h"
#include "view/json/views.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::text {
namespace {

using heap::SizeHistogram;

// "64..127", "1 KiB..".
std::string range(size_t number, const Style& style) {
  const uint64_t least = SizeHistogram::least(number);
  if (number < 2) return fmt::format("{}", least);
  if (!style.units || least < 1024) {
    return fmt::format("{}..{}", least, SizeHistogram::most(number));
  }
  return size_text(least, style) + "..";
}

}  // namespace

std::string sizes_line(const SizeHistogram& sizes, const Style& style) {
  return fmt::format("{} in {} of {} on average", size_text(sizes.bytes(), style),
                     count_text(sizes.blocks(), "block"), size_text(sizes.average(), style));
}

std::string sizes_text(const SizeHistogram& sizes, const Style& style) {
  if (sizes.blocks() == 0) return {};
  const auto& classes = sizes.classes();
  size_t first = 0;
  while (classes[first].blocks == 0) ++first;
  size_t last = SizeHistogram::kClasses - 1;
  while (classes[last].blocks == 0) --last;
  std::string out = coloured(fmt::format("  {:>22} {:>13} {:>15}", "block size", "blocks", "bytes"),
                             kFaint, style) +
                    '\n';
  for (size_t i = first; i <= last; ++i) {
    const auto bar = static_cast<size_t>(std::bit_width(classes[i].blocks));
    out += fmt::format(
        "  {:>22} {:>13} {:>15}", range(i, style), util::grouped(classes[i].blocks),
        style.units ? size_text(classes[i].bytes, style) : fmt::format("{}", classes[i].bytes));
    if (bar != 0) out += "  " + std::string(bar, '#');
    out += '\n';
  }
  return out;
}

namespace {

constexpr uint64_t kAround = 3;  // lines before and after one with numbers

std::string number(int64_t value, const Style& style) {
  if (value == 0) return ".";
  const bool bytes = style.order != analyze::Order::kBlocks &&
                     style.order != analyze::Order::kAllocations &&
                     style.order != analyze::Order::kTemporary;
  return style.units && bytes ? bytes_text(value, style, false) : fmt::format("{}", value);
}

// A line of a file, safe to print on a terminal, with tabs as blanks.
std::string printable(std::string_view line) {
  constexpr size_t kTab = 8;
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const auto next = static_cast<unsigned char>(i + 1 < line.size() ? line[i + 1] : 0);
    if (byte == '\t') {
      out.append(kTab - util::columns_of(out) % kTab, ' ');
    } else if (byte < 0x20 || byte == 0x7f) {
      out += '?';
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // a control character of Latin-1
      out += '?';
      ++i;
    } else {
      out += line[i];
    }
  }
  return out;
}

std::string row(const analyze::LineSum& sum, const Style& style) {
  return fmt::format("{:>12} {:>12}", number(sum.flat, style), number(sum.cumulative, style));
}

}  // namespace

std::string source_text(const analyze::ListedFunction& function, const Style& style) {
  const std::string name =
      style.full_names ? function.function : analyze::brief_name(function.function);
  std::string out = row(function.sum, style) + "  " + coloured(plain(name), kBold, style) + "  " +
                    coloured(plain(function.file), kFaint, style) + '\n';
  std::string content;
  try {
    content = util::read_file(function.file);
  } catch (const std::exception& error) {
    return out + remark(error.what(), style);
  }
  const std::vector<std::string_view> text = util::split(content, '\n');
  const uint64_t lines = text.size() - (content.ends_with('\n') ? 1 : 0);
  uint64_t next = 0;  // the first line that is not printed yet
  for (const auto& [at, sum] : function.lines) {
    const uint64_t begin = std::max(next, at > kAround ? at - kAround : 1);
    if (next != 0 && begin > next) out += fmt::format("{:>32}\n", "...");
    for (next = begin; next <= std::min(at + kAround, lines); ++next) {
      const auto known = function.lines.find(next);
      const bool has = known != function.lines.end();
      const std::string line =
          fmt::format("{} {:>6}  {}", row(has ? known->second : analyze::LineSum(), style), next,
                      printable(text[next - 1]));
      out += (has ? line : coloured(line, kFaint, style)) + '\n';
    }
    if (at > lines) {
      out += remark(fmt::format("{} has {} lines, not {}: it is not the file that was compiled",
                                plain(function.file), lines, at),
                    style);
    }
  }
  return util::cut_lines(out, style.columns);
}

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
    // By Order.
    constexpr const char* kTitles[] = {"",      "",     "live", "allocs", "temporary", "lifetime",
                                       "slack", "peak", "age",  "",       "size",      "failed"};
    return kTitles[static_cast<size_t>(style_.order)];
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

namespace {

using analyze::Course;
using analyze::Finding;
using analyze::Series;

// Where the growth is known exactly, its interval says nothing.
std::string interval_text(const json::Value& slope, const Style& style) {
  if (*slope.find("growth_low_bytes_per_report") == *slope.find("growth_high_bytes_per_report")) {
    return {};
  }
  return filled(
      " (95%: {growth_low_bytes_per_report:+size} to {growth_high_bytes_per_report:+size})", slope,
      style);
}

// How likely a stack that only fluctuates looks like this.
std::string chance_text(double probability, bool explain) {
  constexpr double kLeast = 1e-6;
  const double one_in = std::floor(1 / std::max(probability, kLeast));
  const char* const sure = probability < 1e-3   ? "almost certainly growing"
                           : probability < 0.05 ? "very probably growing"
                                                : "probably growing";
  std::string out =
      fmt::format("{} ({}1 in {} by chance)", sure, probability < kLeast ? "less than " : "",
                  util::grouped(static_cast<uint64_t>(one_in)));
  if (explain) out += probability < 1e-4 ? ", p < 0.0001" : fmt::format(", p {:.4f}", probability);
  return out;
}

std::string stack_text(const Series& series, const Row& row, const Style& style) {
  if (row.group != nullptr) return "    " + group_text(*row.group, style) + '\n';
  std::string out;
  for (const std::string& line : stack_lines(series.table(), row, style)) {
    out += "    " + line + '\n';
  }
  return out;
}

std::string leak_text(const Series& series, const Finding& finding, const json::Value& leak,
                      bool explain, const Style& style) {
  return coloured(filled("{growth_bytes_per_report:+size} a report", leak, style), kRed, style) +
         (explain ? interval_text(leak, style) : "") +
         filled("  {first_bytes:size} -> {last_bytes:size}  ", leak, style) +
         chance_text(finding.probability, explain) + filled("[  {stack_count:stack}]", leak) +
         coloured(filled("[  stack={stack}]", leak), kFaint, style) + '\n' +
         stack_text(series, series.table().rows()[finding.row], style);
}

std::string forecast_text(json::Value forecast, Style style) {
  if (forecast.find("reports") == nullptr) {
    return filled("{limit_bytes:size} are live already\n", forecast, style);
  }
  forecast["latest"] = filled("[after {reports_latest:,} at the latest]", forecast);
  if (forecast["latest"].is_empty()) forecast["latest"] = "never";
  const std::string what = filled("{limit_bytes:size}", forecast, style);
  style.units = true;
  forecast["milliseconds"] = forecast["seconds"].as_double() * 1000;
  return what + filled(
                    " are live after {reports:,} more reports (95%: after {reports_earliest:,} "
                    "at the earliest, {latest}), at this pace in {milliseconds:time}\n",
                    forecast, style);
}

}  // namespace

std::string leaks_text(const Series& series, const std::vector<Finding>& findings,
                       const LeaksContext& context, const Style& style) {
  const std::string row = analyze::group_word(context.group_by);
  json::Value facts;
  json::put_findings(facts, series, findings, context.level, context.limit, style.limit);
  const std::vector<json::Value>& stacks = facts.find("stacks")->elements();
  const size_t leaks = static_cast<size_t>(facts.find("stacks_growing")->as_signed());
  const size_t others = findings.size() - leaks;
  const auto hidden = [](size_t more) {
    return more == 0 ? "" : fmt::format("... {} more (-n 0)\n", util::grouped(uint64_t{more}));
  };
  const size_t shown = style.limit == 0 ? leaks : std::min(leaks, style.limit);
  std::string out;
  for (size_t i = 0; i < shown; ++i) {
    out += leak_text(series, findings[i], stacks[i], context.explain, style);
  }
  out += hidden(leaks - shown);
  if (leaks == 0) {
    out += fmt::format("no {} grows\n", row);
  } else {
    out += fmt::format("\n{} {}: ", count_text(leaks, row.c_str()), leaks == 1 ? "grows" : "grow") +
           filled("{growth_bytes_per_report:+size} a report in all", facts, style) +
           (context.explain ? interval_text(facts, style) : "") + '\n';
    const auto is_several = [](const json::Value& stack) {
      const json::Value* const count = stack.find("stack_count");
      return count != nullptr && count->as_signed() > 1;
    };
    if (context.group_by == analyze::GroupBy::kFunction &&
        std::any_of(stacks.begin(), stacks.begin() + static_cast<ptrdiff_t>(shown), is_several)) {
      out += "--group-by line tells the lines of a function apart, --group-by stack its callers\n";
    }
    if (context.limit) out += forecast_text(*facts.find("forecast"), style);
  }
  if (context.explain) {
    out +=
        fmt::format("{} changed and {} tested; by chance, {:.2g} would be taken for growing\n",
                    count_text(findings.size(), row.c_str()), findings.size() == 1 ? "was" : "were",
                    facts.find("stacks_growing_by_chance")->as_double());
  }
  if (others == 0) return out + left_out_text(context.filtered);
  json::Value rest = json::Value::array();
  for (size_t i = shown; i < stacks.size(); ++i) {
    const Row& one = series.table().rows()[findings[leaks + i - shown].row];
    json::Value stack = stacks[i];
    stack["what"] = one.group != nullptr ? group_text(*one.group, style)
                                         : stack_line(series.table(), one, style);
    rest.push_back(std::move(stack));
  }
  return out + '\n' + coloured("not growing:", kBold, style) + '\n' +
         table({{"", "{course}"},
                {"", "{first_bytes:size}"},
                {"", "-> {last_bytes:size}"},
                {"", "{what}"}},
               rest, style) +
         hidden(others - rest.size()) + left_out_text(context.filtered);
}

}  // namespace mtrace::text
