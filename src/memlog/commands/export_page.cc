#include "commands/export_page.h"

#include <fmt/format.h>

#include <stdexcept>

#include "analyze/series.h"
#include "collect/report_series.h"
#include "collect/report_set.h"
#include "export/report_page.h"
#include "profile/text.h"
#include "terminal/progress.h"
#include "text/style.h"

namespace mtrace::cli {
namespace {

void check_options(const Arguments& arguments) {
  for (const char* option :
       {"--by", "--peak", "--base", "--min-bytes", "--grew", "--shrank", "--lifetime"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format(
          "export: {} does not go with html: the page shows what is live at each report", option));
    }
  }
}

std::vector<std::string> files_for(const std::vector<std::string>& operands) {
  std::vector<std::string> files;
  if (!operands.empty()) {
    for (const std::string& operand : operands) {
      for (std::string& file : collect::files_of(operand)) files.push_back(std::move(file));
    }
    return files;
  }
  const collect::Listed newest = collect::Reports::look(collect::Reports::files({}, false).front());
  for (const collect::Listed& listed : collect::list_memlogs(collect::report_directory())) {
    const bool same = listed.pid == newest.pid && listed.started == newest.started &&
                      listed.program == newest.program;
    if (same) files.push_back(listed.path);
  }
  return files;
}

collect::ReportSeries series_for(const std::vector<std::string>& operands) {
  std::vector<collect::ReportSeries> all = collect::series_in(files_for(operands), "export");
  if (all.size() > 1) {
    const auto name = [&](size_t i) {
      return fmt::format("{}[{}]", text::plain(all[i][0].program), all[i][0].pid);
    };
    throw std::runtime_error(
        fmt::format("export: a page is about one process; here are {}: {}, {}{}", all.size(),
                    name(0), name(1), all.size() > 2 ? ", ..." : ""));
  }
  return std::move(all.front());
}

profile::Total before(const profile::Header& header) {
  profile::Total total = header.live;
  if (__builtin_sub_overflow(total.bytes, header.delta.bytes, &total.bytes) ||
      __builtin_sub_overflow(total.blocks, header.delta.blocks, &total.blocks)) {
    throw std::runtime_error("a difference does not fit 64 bits");
  }
  return total;
}

}  // namespace

std::string export_page(const Arguments& arguments, collect::Reports& reports) {
  check_options(arguments);
  const collect::ReportSeries files = series_for(arguments.operands());
  analyze::Series series(reports.filter().frames);
  exporting::PageInput page = {.series = series};
  analyze::LeftOut left_out;
  bool sampled = false;
  bool first = true;
  terminal::Progress progress(files.size());
  for (const collect::Listed& file : files) {
    const profile::Memlog memlog = reports.read_series(file.path, left_out);
    if (first) page.before = before(memlog.header);
    first = false;
    const bool wanted = reports.filter().takes(memlog.header.seq, memlog.header.label);
    series.add(memlog, wanted);
    if (wanted) page.headers.push_back(memlog.header);
    sampled |= memlog.header.sampled.has_value();
    progress.step();
  }
  if (page.headers.empty()) throw std::runtime_error(collect::kNoneChosen);
  const std::string missing = collect::missing_text(files);
  page.filtered = left_out.stacks != 0;
  page.complete = missing.empty() && page.before == profile::Total{};
  if (!missing.empty()) page.remarks.push_back("missing: report " + missing);
  if (page.filtered) {
    page.remarks.push_back(fmt::format(
        "filters have left out {} of the reports' entries, net {} bytes",
        profile::grouped(uint64_t{left_out.stacks}), profile::grouped(left_out.bytes, true)));
  }
  if (sampled) page.remarks.emplace_back("sampled: bytes and blocks are estimates");
  return exporting::report_page(page);
}

}  // namespace mtrace::cli
