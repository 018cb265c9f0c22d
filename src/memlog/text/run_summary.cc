#include "text/run_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/groups.h"
#include "profile/reader.h"
#include "symbolize/symbolizer.h"
#include "text/header_text.h"
#include "text/listing.h"

namespace mtrace::text {
namespace {

constexpr size_t kFunctions = 5;
constexpr char kExit[] = "exit";
constexpr char kRecovered[] = "recovered";

bool is_live(const analyze::Row& row) { return row.kind.empty() && row.bytes > 0; }

std::string file_names(const std::vector<std::string>& files) {
  return files.size() == 1 ? files[0] : fmt::format("{} to {}", files.front(), files.back());
}

}  // namespace

std::string run_summary(const std::vector<std::string>& files, Style style) {
  if (style.responsible == nullptr) style.responsible = std::make_shared<analyze::Responsible>();
  symbolize::Symbolizer resolver({});
  std::vector<profile::Memlog> memlogs;
  for (const std::string& file : files) {
    memlogs.push_back(profile::read_path(file));
    // One more may follow the report at exit, which does not matter any more.
    if (memlogs.size() > 1 && memlogs[memlogs.size() - 2].header.trigger == kExit) {
      memlogs.pop_back();
      break;
    }
    if (memlogs.back().header.resolved != profile::Resolved::kYes) resolver.resolve(memlogs.back());
  }
  std::vector<analyze::ProcessSum> sums = analyze::sum_processes(memlogs);
  analyze::ProcessSum& process = sums.back();
  const profile::Header& last = process.last;
  std::string out = coverage_remarks(last, style) + peak_text(last, style);
  out += fmt::format("{} {} in {} blocks\n",
                     last.trigger == kExit        ? "live at exit"
                     : last.trigger == kRecovered ? "live when it ended, by its ledger:"
                                                  : "live at the last report, which was not at exit:",
                     bytes_text(last.live.bytes, style, false), last.live.blocks);
  for (const std::string& why : process.incomplete) out += remark(plain(why), style);

  Context context;
  const size_t stacks = static_cast<size_t>(
      std::count_if(process.table.rows().begin(), process.table.rows().end(), is_live));
  analyze::Table table =
      analyze::grouped(std::move(process.table), analyze::GroupBy::kFunction, style.responsible);
  std::vector<analyze::Row>& rows = table.rows();
  std::erase_if(rows, [](const analyze::Row& row) { return !is_live(row); });
  context.growth = analyze::gross_growth(rows);
  analyze::sort(rows, analyze::Order::kBytes);
  const size_t all = rows.size();
  if (all > kFunctions) rows.resize(kFunctions);
  if (all != 0) {
    out += fmt::format(
        "by function{} ({}):\n\n",
        all > kFunctions ? fmt::format(", the {} largest of {}", kFunctions, all) : std::string(),
        count_text(stacks, "stack"));
    out += entries_text(table, context, style) + '\n';
  }
  return out + fmt::format("reports: {}\n", plain(file_names(files)));
}

}  // namespace mtrace::text
