#include "surface/cli/export_rows.h"

#include <cstdlib>
#include <utility>

#include "surface/cli/report_options.h"
#include "util/progress.h"
#include "view/analyze/compare.h"
#include "view/analyze/sum.h"
#include "view/reports/report_set.h"
#include "view/text/header_text.h"
#include "view/text/report_text.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

ExportRows rows_of(const profile::Header& header) {
  ExportRows rows;
  rows.program = text::plain(header.program);
  rows.taken = header.taken;
  rows.uptime = std::strtod(header.uptime.c_str(), nullptr);
  return rows;
}

ExportRows compared(const Arguments& arguments, analyze::Order order, reports::Reports& reports) {
  if (order != analyze::Order::kBytes && order != analyze::Order::kBlocks) {
    throw UsageError("export: --base compares only bytes or blocks: use --by bytes or --by blocks");
  }
  analyze::LeftOut left_out;
  const std::vector<std::string> files =
      reports::files_of(reports::Reports::files(arguments.operands(), false));
  const reports::ReportSet before =
      reports::live_set(reports::files_of(arguments.value("--base")), reports, left_out);
  const reports::ReportSet after = reports::live_set(files, reports, left_out);
  ExportRows rows = rows_of(after.processes.back().last);
  rows.base = before.processes.back().last.taken;
  rows.table = analyze::compare(before.table, after.table).table;
  analyze::drop_empty(rows.table.rows(), order);
  reports.filter().apply(rows.table.rows());
  analyze::sort(rows.table.rows(), order);
  return rows;
}

}  // namespace

ExportRows export_rows(const Arguments& arguments, analyze::Order order, reports::Reports& reports,
                       const Streams& streams) {
  if (arguments.has("--base")) return compared(arguments, order, reports);
  text::Style style;
  style.order = order;
  text::Context context;
  const std::vector<std::string> files = reports::Reports::files(arguments.operands(), false);
  std::vector<reports::Found> found = reports.find(files);
  const bool all = !reports.filter().chooses_reports();
  if (found.size() == 1) {
    const util::Progress progress(1);
    const bool file = found[0].memlog == nullptr;  // which can be read again
    reports::Report report = reports.read(found[0]);
    const profile::Header& header = report.head().header;
    ExportRows rows = rows_of(header);
    if (all && header.merged.value_or(header.seq) == 1) {
      if (file) {
        rows.series = files;
      } else {
        rows.first = report.head();
      }
    }
    rows.table = text::table_of(report, reports.filter(), style, text::Rows::kAll, 0, context);
    return rows;
  }
  if (order == analyze::Order::kLive) {
    throw UsageError(
        "export: --by live: not for several reports; their sum of bytes is what is live");
  }
  const std::vector<analyze::ProcessSum> sums =
      reports.sum(std::move(found), !all, context.filtered);
  ExportRows rows = rows_of(sums.back().last);
  if (all && sums.size() == 1) rows.series = files;
  rows.status = complain_incomplete(sums, streams);
  if (const std::string line = inherited_text(sums); !line.empty()) {
    complain(streams, "export: " + line);
  }
  rows.table = text::table_of(sums, reports.filter(), style, text::Rows::kAll, context);
  return rows;
}

}  // namespace mtrace::cli
