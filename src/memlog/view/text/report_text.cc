#include "view/text/report_text.h"

#include "format/memlog.h"
#include "util/text.h"
#include "view/json/views.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::text {
namespace {

using analyze::Order;
using analyze::Row;
using analyze::Table;

// The share of the growth, in a list that is about it.
std::string percent_text(const Row& row, int64_t growth, const Style& style) {
  if (style.order != Order::kBytes || !style.percent) return {};
  if (!row.kind.empty() || row.bytes <= 0 || growth <= 0) return {};
  return share_text(static_cast<uint64_t>(row.bytes), static_cast<uint64_t>(growth));
}

const char* sign_colour(int64_t bytes) { return bytes > 0 ? kRed : bytes < 0 ? kGreen : kFaint; }

std::string long_entry(const Table& table, const Row& row, const Context& context,
                       const Style& style) {
  std::string out = coloured(lead_text(row, context.peak, style), kBold, style);
  if (!out.empty()) out += "  ";
  out += coloured(bytes_text(row.bytes, style), sign_colour(row.bytes), style);
  out += error_text(analyze::error_of(row), style);
  if (style.order != Order::kBlocks) out += "  " + blocks_text(row.blocks, true);
  const std::string percent = percent_text(row, context.growth, style);
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
  const std::string facts = facts_text(row, style);
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
  const bool narrow = style.narrow(lead.empty() ? 51 : 66);
  std::string out =
      lead.empty() ? "" : coloured(fmt::format("{:>{}} ", lead, narrow ? 11 : 14), kBold, style);
  const std::string number =
      style.units ? bytes_text(row.bytes, style) : fmt::format("{:+}", row.bytes);
  const std::string bytes =
      coloured(fmt::format("{:>{}}", number, narrow ? 11 : 14), sign_colour(row.bytes), style);
  const std::string blocks = fmt::format("{:>+10}", row.blocks);
  const bool blocks_first = style.order == Order::kBlocks;
  if (!narrow || lead.empty()) out += blocks_first ? blocks : bytes;
  if (!narrow) out += ' ' + (blocks_first ? bytes : blocks);
  const std::string percent = style.order == Order::kPeak
                                  ? share_text(row.peak, context.peak)
                                  : percent_text(row, context.growth, style);
  if (style.percent) out += fmt::format(" {:>6}", percent);
  const std::string id = row.group != nullptr ? count_text(row.group->stacks, "stack")
                         : row.stack == 0     ? ""
                                              : fmt::format("{:016x}", row.stack);
  if (!narrow) out += ' ' + coloured(fmt::format("{:>16}", id), kFaint, style);
  out += ' ';
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
      out += util::cut_lines(short_entry(table, row, context, style), style.columns);
    } else {
      out += long_entry(table, row, context, style);
    }
  }
  if (rest.rows != 0) {
    const auto fits = static_cast<int64_t>(rest.bytes);
    const std::string sum = rest.bytes == fits ? util::grouped(fits, true) : "more than 2^63";
    out +=
        fmt::format("... {} more, net {} bytes (-n 0)\n", util::grouped(uint64_t{rest.rows}), sum);
  }
  return out;
}

}  // namespace

std::string left_out_text(const analyze::FilteredOut& filtered) {
  std::string out;
  const auto add = [&](const analyze::StacksLeftOut& part, const char* why, const char* remedy) {
    if (part.stacks() == 0) return;
    out += fmt::format("... {} {}, net {} bytes{}\n", util::grouped(uint64_t{part.stacks()}), why,
                       util::grouped(part.bytes(), true), remedy);
  };
  add(filtered.by_filters, "left out by filters", "");
  add(filtered.by_runtimes, "kept by the C and C++ runtimes", " (--no-builtin)");
  return out;
}

std::string kind_title(const std::string& kind, const Style& style) {
  if (!style.header) return {};
  const std::string title = fmt::format("@{}: not part of the heap's totals", kind);
  return '\n' + coloured(title, kBold, style) + '\n';
}

std::string remarks_text(const Context& context, const Style& style) {
  std::string out = left_out_text(context.filtered);
  if (context.left_out != 0) {
    out += fmt::format("... {} left out: {}\n", util::grouped(uint64_t{context.left_out}),
                       lack_text(style.order));
  }
  if (context.net && (style.order == Order::kAllocations || style.order == Order::kTemporary ||
                      style.order == Order::kLifetime)) {
    out += "... not listed: stacks that freed all they allocated (MTRACE_ENTRIES=net)\n";
  }
  if (context.balanced != 0 && style.order != Order::kStack) {
    out += fmt::format("... {} freed as much as {} allocated (--by allocs)\n",
                       util::grouped(uint64_t{context.balanced}),
                       context.balanced == 1 ? "it" : "they");
  }
  if (context.unchanged != 0 && style.order != Order::kStack) {
    out += fmt::format("... {} unchanged, listed for {} share in the peak (--peak)\n",
                       util::grouped(uint64_t{context.unchanged}),
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
namespace {

std::string allocations_text(const Row& row, const Style& style) {
  return fmt::format("{} {}", count_text(row.allocations, "allocation"),
                     size_text(row.allocated_bytes, style));
}

std::string frees_text(const Row& row, const Style& style) {
  return fmt::format("{} {}", count_text(row.frees, "free"), size_text(row.freed_bytes, style));
}

std::string short_lived_text(const Row& row) {
  return row.short_lived == 0 ? "" : util::grouped(row.short_lived) + " short-lived";
}

std::string temporary_text(const Row& row) {
  std::string out = util::grouped(row.temporary) + " temporary";
  const std::string of_allocations = share_text(row.temporary, row.allocations);
  if (!of_allocations.empty()) {
    out += fmt::format(", {} of {}", of_allocations, count_text(row.allocations, "allocation"));
  }
  const std::string of_frees = share_text(row.temporary, row.frees);
  if (!of_frees.empty()) out += fmt::format(", {} of {}", of_frees, count_text(row.frees, "free"));
  return out;
}

std::string lifetime_text(const Row& row, const Style& style) {
  const analyze::Lifetimes& life = row.lifetimes;
  if (life.least == life.most) return "lifetime " + duration_text(life.most, style);
  return fmt::format("lifetime {} on average, {} to {}", duration_text(life.mean(), style),
                     duration_text(life.least, style), duration_text(life.most, style));
}

std::string age_text(const Row& row, const Style& style) {
  return "oldest " + duration_text(row.age, style);
}

std::string slack_text(const Row& row, const Style& style) {
  return "slack " + size_text(row.slack, style);
}

std::string peak_text(const Row& row, uint64_t peak, const Style& style) {
  const std::string share = row.kind.empty() ? share_text(row.peak, peak) : "";
  return fmt::format("at the peak {}{}", size_text(row.peak, style),
                     share.empty() ? "" : fmt::format(" ({})", share));
}

// malloc goes without saying.
std::string call_text(const Row& row) {
  if (row.call.empty() || row.call.text() == "malloc" || row.group != nullptr) return {};
  std::string calls;
  for (const char c : row.call.text()) {
    calls += c;
    if (c == ',') calls += ' ';
  }
  return "by " + util::escaped(calls, "");
}

}  // namespace

std::string lead_text(const Row& row, uint64_t peak, const Style& style) {
  switch (style.order) {
    case Order::kBytes:
    case Order::kStack:
      return {};
    case Order::kBlocks:
      return blocks_text(row.blocks, true);
    case Order::kLive:
      return row.live ? "live " + size_text(*row.live, style) : "";
    case Order::kAllocations:
      return allocations_text(row, style);
    case Order::kTemporary: {
      const std::string brief = short_lived_text(row);
      return temporary_text(row) + (brief.empty() ? "" : ", " + brief);
    }
    case Order::kLifetime:
      return lifetime_text(row, style);
    case Order::kSlack:
      return slack_text(row, style);
    case Order::kPeak:
      return peak_text(row, peak, style);
    case Order::kAge:
      return age_text(row, style);
    case Order::kSize:
      return fmt::format("{} a block", size_text(analyze::block_size(row), style));
    case Order::kFailed:
      return util::grouped(static_cast<uint64_t>(row.blocks)) + " failed";
  }
  return {};
}

std::string lead_column(const Row& row, const Style& style) {
  const auto number = static_cast<uint64_t>(analyze::quantity(row, style.order));
  switch (style.order) {
    case Order::kBytes:
    case Order::kBlocks:  // has a column of its own
    case Order::kStack:
      return {};
    case Order::kAllocations:
    case Order::kTemporary:
    case Order::kFailed:
      return util::grouped(number);
    case Order::kLive:
      if (!row.live) return "-";
      [[fallthrough]];
    case Order::kSlack:
    case Order::kPeak:
    case Order::kSize:
      return style.units ? size_text(number, style) : fmt::format("{}", number);
    case Order::kLifetime:
    case Order::kAge:
      return duration_text(number, style);
  }
  return {};
}

std::string facts_text(const Row& row, const Style& style) {
  std::string out;
  const auto add = [&](const std::string& fact) {
    if (!fact.empty()) out += (out.empty() ? "" : "; ") + fact;
  };
  const Order order = style.order;
  // Of a stack that only allocated, or only freed, the change says it all.
  if (row.allocations != 0 && row.frees != 0) {
    add((order == Order::kAllocations ? "" : allocations_text(row, style) + ", ") +
        frees_text(row, style));
  }
  // A listing in the order of the stacks is for comparing: not with what changes by itself.
  if (order == Order::kStack) return out;
  if (order != Order::kTemporary) {
    if (row.temporary != 0) add(util::grouped(row.temporary) + " temporary");
    add(short_lived_text(row));
  }
  if (order != Order::kLifetime && row.lifetimes.most != 0) add(lifetime_text(row, style));
  if (order != Order::kAge && row.age != 0) add(age_text(row, style));
  if (order != Order::kSlack && row.slack != 0) add(slack_text(row, style));
  if (order != Order::kPeak && row.peak != 0) add(peak_text(row, 0, style));
  if (row.kind == format::kKindFailed &&
      std::max(row.live.value_or(0), row.allocated_bytes) >= format::kMostFailed) {
    add("bytes are at least this");
  }
  add(call_text(row));
  for (const profile::Field& field : row.further) {
    if (field.key == format::kFieldProtection) add("mapped " + field.value);
    if (field.key == format::kFieldFlags) out += ", " + field.value;
  }
  return out;
}

const char* lack_text(Order order) {
  // By Order.
  constexpr const char* kLacks[] = {"no change",
                                    "no change",
                                    "no change",
                                    "no change",
                                    "nothing temporary",
                                    "nothing freed after a time that can be measured",
                                    "no slack",
                                    "no share in the peak",
                                    "no live block, or none of an age that can be measured",
                                    "no change",
                                    "no change that tells the size of blocks",
                                    "no failed allocation"};
  return kLacks[static_cast<size_t>(order)];
}

namespace {

bool has_option(const profile::Header& header, const char* option) {
  return header.library.find(option) != std::string::npos;
}

// Older libraries told this option only where it was not net.
bool lists_net(const profile::Header& header) {
  return !has_option(header, "MTRACE_ENTRIES=") || has_option(header, "MTRACE_ENTRIES=net");
}

// Counts the rows that drop_empty() will remove by why the report lists them.
void count_unchanged(const std::vector<analyze::Row>& rows, analyze::Order order,
                     Context& context) {
  for (const analyze::Row& row : rows) {
    if (row.bytes != 0 || row.blocks != 0 || analyze::quantity(row, order) != 0) continue;
    ++(row.allocations != 0 || row.frees != 0 ? context.balanced : context.unchanged);
  }
}

uint64_t peak_of(const profile::Header& header) { return header.peak ? header.peak->bytes : 0; }

// Drops the rows that are not wanted, which the context counts.
void narrow(analyze::Table& table, const analyze::Filter& filter, const Style& style, Rows rows,
            Context& context) {
  if (__builtin_add_overflow(context.growth, analyze::gross_growth(table.rows()),
                             &context.growth)) {
    context.growth = INT64_MAX;
  }
  if (rows == Rows::kAll) {
  } else if (analyze::leaves_out_zero(style.order)) {
    context.left_out += analyze::drop_empty(table.rows(), style.order);
  } else if (!filter.whole_stacks() || (rows == Rows::kChanged && !context.every)) {
    count_unchanged(table.rows(), style.order, context);
    analyze::drop_empty(table.rows(), style.order);
  }
  context.filtered.add(filter.apply(table.rows()));
}

}  // namespace

void each_part(reports::Report& report, const analyze::Filter& filter, const Style& style,
               Rows rows, Context& context, const std::function<void(analyze::Table&)>& action) {
  const profile::Header& header = report.head().header;
  context.peak = peak_of(header);
  context.net = lists_net(header);
  context.every = has_option(header, "MTRACE_ENTRIES=all");
  analyze::Table merged;
  analyze::GroupedTable groups(filter.group_by, filter.responsible);
  report.each([&](profile::Memlog& piece) {
    if (filter.group_by != analyze::GroupBy::kStack) {
      analyze::Table part = analyze::Table::of(piece);
      add_holders(header, part, style, context.holders);
      groups.add(part);
    } else if (filter.frames.whole()) {
      analyze::Table part = analyze::Table::of(piece);
      add_holders(header, part, style, context.holders);
      narrow(part, filter, style, rows, context);
      action(part);
    } else {
      merged.merge(piece, filter.frames);
    }
  });
  context.filtered.add(report.left_out());
  if (filter.whole_stacks()) return;
  if (filter.group_by != analyze::GroupBy::kStack) merged = groups.finish();
  narrow(merged, filter, style, rows, context);
  action(merged);
}

analyze::Table table_of(reports::Report& report, const analyze::Filter& filter, const Style& style,
                        Rows rows, size_t limit, Context& context) {
  std::optional<analyze::Table> all;
  each_part(report, filter, style, rows, context, [&](analyze::Table& part) {
    if (!all) {
      all = std::move(part);
    } else {
      all->take(part);
    }
    if (limit != 0) analyze::keep_first(all->rows(), style.order, limit, context.rest);
  });
  analyze::sort(all->rows(), style.order);
  return std::move(*all);
}

analyze::Table table_of(const std::vector<analyze::ProcessSum>& sums, const analyze::Filter& filter,
                        const Style& style, Rows rows, Context& context) {
  analyze::Table all;
  for (const analyze::ProcessSum& process : sums) {
    context.net |= lists_net(process.last);
    all.merge(process.table, filter.frames);
    analyze::add_to(context.peak, peak_of(process.last));
  }
  all = analyze::grouped(std::move(all), filter.group_by, filter.responsible);
  context.growth = analyze::gross_growth(all.rows());
  if (rows == Rows::kChanged || (rows == Rows::kListed && analyze::leaves_out_zero(style.order))) {
    const size_t dropped = analyze::drop_empty(all.rows(), style.order);
    if (analyze::leaves_out_zero(style.order)) context.left_out = dropped;
  }
  context.filtered.add(filter.apply(all.rows()));
  analyze::sort(all.rows(), style.order);
  return all;
}

std::string view_header(const profile::Header& header, const Context& context, const Style& style) {
  if (!style.header) return {};
  return header_text(header, style) + resident_remark(header, context.holders, style) + '\n';
}

std::string view_header(const std::vector<analyze::ProcessSum>& sums, const Style& style) {
  if (!style.header) return {};
  std::string out;
  for (const analyze::ProcessSum& process : sums) {
    const profile::Header& last = process.last;
    out += filled(
        "{program}, pid {pid}: {sum.bytes:size} in {sum.blocks:blocks}, "
        "from {summed_reports:report}, the last taken {taken}\n",
        json::process(process), style);
    out += peak_text(last, style) + coverage_remarks(last, style);
    for (const std::string& note : process.notes) out += remark(plain(note), style);
    for (const std::string& why : process.incomplete) out += remark(plain(why), style);
    Holders holders;
    add_holders(last, process.table, style, holders);
    out += resident_remark(last, holders, style);
  }
  return out + '\n';
}

}  // namespace mtrace::text
