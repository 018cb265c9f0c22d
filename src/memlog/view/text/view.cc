#include "view/text/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "view/analyze/table.h"
#include "view/json/report.h"
#include "view/text/answer.h"
#include "view/text/header_text.h"

namespace mtrace::text {
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
