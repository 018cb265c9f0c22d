#include "text/listing.h"

#include <fmt/format.h>

#include "profile/text.h"
#include "terminal/size.h"
#include "text/frame_text.h"
#include "text/stack_facts.h"

namespace mtrace::text {
namespace {

using analyze::Order;
using analyze::Row;
using analyze::Table;

std::string percent_text(const Row& row, int64_t growth) {
  if (!row.kind.empty() || row.bytes <= 0 || growth <= 0) return {};
  return fmt::format("{:.1f}%",
                     100.0 * static_cast<double>(row.bytes) / static_cast<double>(growth));
}

const char* sign_colour(int64_t bytes) { return bytes > 0 ? kRed : bytes < 0 ? kGreen : kFaint; }

std::string long_entry(const Table& table, const Row& row, const Context& context,
                       const Style& style) {
  std::string out = coloured(lead_text(row, context.peak, style), kBold, style);
  if (!out.empty()) out += "  ";
  out += coloured(bytes_text(row.bytes, style), sign_colour(row.bytes), style);
  out += error_text(analyze::error_of(row), style);
  if (style.order != Order::kBlocks) out += fmt::format("  {:+} blocks", row.blocks);
  const std::string percent = style.percent ? percent_text(row, context.growth) : "";
  if (!percent.empty()) out += "  " + coloured(percent, kBold, style);
  if (row.live && style.order != Order::kLive) {
    out += "  live " + size_text(*row.live, style) + error_text(analyze::live_error_of(row), style);
  }
  if (row.before) {
    out += fmt::format("  {} -> {}", bytes_text(*row.before, style, false),
                       bytes_text(*row.before + row.bytes, style, false));
  }
  if (row.group != nullptr) out += "  " + count_text(row.group->stacks, "stack");
  if (row.stack != 0) out += coloured(fmt::format("  stack={:016x}", row.stack), kFaint, style);
  out += '\n';
  const std::string facts = facts_text(row, context.peak, style);
  if (!facts.empty()) out += "  " + coloured(facts, kFaint, style) + '\n';
  if (row.group != nullptr) return out + "    " + group_text(*row.group, style) + '\n';
  for (const std::string& line : stack_lines(table, row, style)) {
    out += "    " + line + '\n';
  }
  return out;
}

std::string short_entry(const Table& table, const Row& row, const Context& context,
                        const Style& style) {
  const std::string lead = lead_column(row, style);
  std::string out = lead.empty() ? "" : coloured(fmt::format("{:>14} ", lead), kBold, style);
  const std::string number =
      style.units ? bytes_text(row.bytes, style) : fmt::format("{:+}", row.bytes);
  const std::string bytes = coloured(fmt::format("{:>14}", number), sign_colour(row.bytes), style);
  const std::string blocks = fmt::format("{:>+10}", row.blocks);
  const bool blocks_first = style.order == Order::kBlocks;
  out += (blocks_first ? blocks : bytes) + ' ' + (blocks_first ? bytes : blocks);
  if (style.percent) out += fmt::format(" {:>6}", percent_text(row, context.growth));
  const std::string id = row.group != nullptr ? count_text(row.group->stacks, "stack")
                         : row.stack == 0     ? ""
                                              : fmt::format("{:016x}", row.stack);
  out += ' ' + coloured(fmt::format("{:>16}", id), kFaint, style) + ' ';
  const std::string what =
      row.group != nullptr ? group_text(*row.group, style) : stack_line(table, row, style);
  return out + (what.empty() ? "" : ' ' + what) + '\n';
}

// The rows of one kind.
std::string kind_text(const Table& table, const std::string& kind, const Context& context,
                      const Style& style) {
  std::string out;
  size_t shown = 0;
  const auto left = context.rest.find(kind);
  analyze::Rest rest = left == context.rest.end() ? analyze::Rest() : left->second;
  for (const Row& row : table.rows()) {
    if (row.kind != kind) continue;
    if (style.limit != 0 && shown == style.limit) {
      ++rest.rows;
      rest.bytes += row.bytes;
      continue;
    }
    ++shown;
    if (style.oneline) {
      out += terminal::cut_lines(short_entry(table, row, context, style), style.columns);
    } else {
      out += long_entry(table, row, context, style);
    }
  }
  if (rest.rows != 0) {
    const auto fits = static_cast<int64_t>(rest.bytes);
    const std::string sum = rest.bytes == fits ? profile::grouped(fits, true) : "more than 2^63";
    out += fmt::format("... {} more, net {} bytes (-n 0)\n", profile::grouped(uint64_t{rest.rows}),
                       sum);
  }
  return out;
}

}  // namespace

std::string left_out_text(const analyze::LeftOut& filtered) {
  if (filtered.stacks == 0) return {};
  return fmt::format("... {} left out by filters, net {} bytes\n",
                     profile::grouped(uint64_t{filtered.stacks}),
                     profile::grouped(filtered.bytes, true));
}

std::string kind_title(const std::string& kind, const Style& style) {
  if (!style.header) return {};
  const std::string title = fmt::format("@{}: not part of the heap's totals", kind);
  return '\n' + coloured(title, kBold, style) + '\n';
}

std::string remarks_text(const Context& context, const Style& style) {
  std::string out = left_out_text(context.filtered);
  if (context.left_out != 0) {
    out += fmt::format("... {} left out: {}\n", profile::grouped(uint64_t{context.left_out}),
                       lack_text(style.order));
  }
  if (context.net && (style.order == Order::kAllocations || style.order == Order::kTemporary ||
                      style.order == Order::kLifetime)) {
    out += "... not listed: stacks that freed all they allocated (MTRACE_ENTRIES=net)\n";
  }
  if (context.balanced != 0 && style.order != Order::kStack) {
    out += fmt::format("... {} freed as much as {} allocated (--by allocs)\n",
                       profile::grouped(uint64_t{context.balanced}),
                       context.balanced == 1 ? "it" : "they");
  }
  if (context.unchanged != 0 && style.order != Order::kStack) {
    out += fmt::format("... {} unchanged, listed for {} share in the peak (--peak)\n",
                       profile::grouped(uint64_t{context.unchanged}),
                       context.unchanged == 1 ? "its" : "their");
  }
  return out;
}

std::string entries_text(const Table& table, const Context& context, const Style& style) {
  std::string out;
  for (const std::string& kind : table.kinds()) {
    if (!kind.empty()) out += kind_title(kind, style);
    out += kind_text(table, kind, context, style);
  }
  out += remarks_text(context, style);
  // A list in the order of the stacks is for comparing with another.
  return out.empty() && style.order != Order::kStack ? "no stack changed\n" : out;
}

}  // namespace mtrace::text
