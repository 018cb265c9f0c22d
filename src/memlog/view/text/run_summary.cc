#include "view/text/run_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/profile/reader.h"
#include "model/symbols/symbolizer.h"
#include "util/file.h"
#include "view/analyze/groups.h"
#include "view/analyze/sum.h"
#include "view/reports/companions.h"
#include "view/text/frame_text.h"
#include "view/text/header_text.h"
#include "view/text/report_text.h"

namespace mtrace::text {
namespace {

constexpr size_t kFunctions = 5;  // of a list
constexpr size_t kProcesses = 3;  // with lists
constexpr uint64_t kNear = 4;     // as large as 1/kNear of the largest
constexpr size_t kLines = 10;     // about further processes
constexpr char kExit[] = "exit";
constexpr char kRecovered[] = "recovered";

using reports::RunProcess;

std::string name_of(const RunProcess& process) {
  return fmt::format("{} ({})", plain(util::base_name(process.program)), process.pid);
}

uint64_t size_of(const RunProcess& process) { return std::max(process.peak, process.resident); }

// Where the program's allocations failed.
std::string failed_text(const analyze::Table& table, const Style& style) {
  int64_t all = 0;
  const analyze::Row* most = nullptr;
  for (const analyze::Row& row : table.rows()) {
    const int64_t failed = analyze::quantity(row, analyze::Order::kFailed);
    if (failed == 0) continue;
    all += failed;
    if (most == nullptr || failed > analyze::quantity(*most, analyze::Order::kFailed)) most = &row;
  }
  if (most == nullptr || most->frames.empty()) return {};
  return remark(fmt::format("{} failed: no memory; {} of them at {} (memlog show --by failed)",
                            count_text(static_cast<uint64_t>(all), "allocation"),
                            analyze::quantity(*most, analyze::Order::kFailed),
                            stack_line(table, *most, style)),
                style);
}

std::string resident_text(const RunProcess& process, const Style& style) {
  if (process.resident == 0) return {};
  return ", resident at most " + bytes_text(static_cast<int64_t>(process.resident), style, false);
}

std::string files_text(const std::vector<std::string>& files) {
  return fmt::format(
      "reports: {}\n",
      plain(files.size() == 1 ? files[0] : fmt::format("{} to {}", files.front(), files.back())));
}

analyze::ProcessSum sum_of(const RunProcess& process) {
  symbols::Symbolizer resolver({});
  std::vector<profile::Memlog> memlogs;
  for (const std::string& file : process.files) {
    memlogs.push_back(profile::read_path(file));
    // One more may follow the report at exit, which does not matter any more.
    if (memlogs.size() > 1 && memlogs[memlogs.size() - 2].header.trigger == kExit) {
      memlogs.pop_back();
      break;
    }
    if (symbols::Symbolizer::is_needed(memlogs.back())) resolver.resolve(memlogs.back());
  }
  return std::move(analyze::sum_processes(memlogs).back());
}

// The functions that hold most by `order`, under a title that begins with `what`. Empty: there is
// none.
std::string functions_text(analyze::Table table, analyze::Order order, const std::string& what,
                           const profile::Header& last, Style style) {
  const auto is_other = [&](const analyze::Row& row) {
    return !row.kind.empty() || analyze::quantity(row, order) <= 0;
  };
  std::erase_if(table.rows(), is_other);
  const size_t stacks = table.rows().size();
  if (stacks == 0) return {};
  analyze::Table functions =
      analyze::grouped(std::move(table), analyze::GroupBy::kFunction, style.responsible);
  std::vector<analyze::Row>& rows = functions.rows();
  Context context;
  context.growth = analyze::gross_growth(rows);
  context.peak = last.peak ? last.peak->bytes : 0;
  style.order = order;
  analyze::sort(rows, order);
  const size_t all = rows.size();
  if (all > kFunctions) rows.resize(kFunctions);
  return fmt::format("\n{} by function{} ({}):\n\n", what,
                     all > kFunctions ? fmt::format(", the {} largest of {}", kFunctions, all) : "",
                     count_text(stacks, "stack")) +
         entries_text(functions, context, style);
}

std::string live_text(const profile::Header& last) {
  return last.trigger == kExit        ? "live at exit"
         : last.trigger == kRecovered ? "live when it ended"
                                      : "live at the last report, which was not at exit";
}

std::string process_text(const RunProcess& process, const Style& style) {
  const analyze::ProcessSum sum = sum_of(process);
  const profile::Header& last = sum.last;
  std::string out = coverage_remarks(last, style) + peak_text(last, style);
  out += fmt::format("{} {} in {} blocks\n", live_text(last),
                     bytes_text(last.live.bytes, style, false), last.live.blocks);
  out += resident_remark(last, style) + failed_text(sum.table, style);
  for (const std::string& why : sum.incomplete) out += remark(plain(why), style);
  // Where the program was largest at its end, both lists are the same.
  const bool grew = last.peak && static_cast<int64_t>(last.peak->bytes) > last.live.bytes;
  if (grew)
    out += functions_text(sum.table, analyze::Order::kPeak, "held at the peak", last, style);
  out += functions_text(sum.table, analyze::Order::kBytes,
                        (grew ? "" : "held at the peak and ") + live_text(last), last, style);
  out += '\n' + files_text(process.files);
  std::string timeline;
  if (reports::timeline_beside(process.files.back(), last, &timeline)) {
    out += fmt::format("timeline: {} (memlog export -f html draws it)\n", plain(timeline));
  }
  return out;
}

}  // namespace

std::string run_summary(const std::vector<RunProcess>& processes, Style style) {
  if (style.responsible == nullptr) style.responsible = std::make_shared<analyze::Responsible>();
  if (processes.size() == 1) return process_text(processes[0], style);
  std::string out =
      fmt::format("{} processes have reported, the largest first\n", processes.size());
  size_t shown = 0;
  while (shown < std::min(kProcesses, processes.size()) &&
         size_of(processes[shown]) >= size_of(processes[0]) / kNear) {
    const RunProcess& process = processes[shown++];
    out += '\n' + coloured(name_of(process) + resident_text(process, style), kBold, style) + '\n' +
           process_text(process, style);
  }
  if (shown < processes.size()) out += "\nsmaller ones:\n";
  const size_t lines = std::min(processes.size(), shown + kLines);
  for (size_t i = shown; i < lines; ++i) {
    out += fmt::format("  {}: peak {}{}, {}\n", name_of(processes[i]),
                       bytes_text(static_cast<int64_t>(processes[i].peak), style, false),
                       resident_text(processes[i], style), plain(processes[i].files.back()));
  }
  if (lines < processes.size()) out += fmt::format("  ... {} more\n", processes.size() - lines);
  return out;
}

std::string lost_summary(profile::Memlog& lost, const char* when, size_t blocks, Style style) {
  const std::string looked = fmt::format("({} looked at)", count_text(blocks, "block"));
  if (lost.entries.empty()) {
    return fmt::format("nothing definitely lost {} {}\n", when, looked);
  }
  if (style.responsible == nullptr) style.responsible = std::make_shared<analyze::Responsible>();
  symbols::Symbolizer({}).resolve(lost);
  const profile::Header header = lost.header;
  return fmt::format("definitely lost {} {} in {} {}\n", when,
                     bytes_text(header.live.bytes, style, false),
                     count_text(static_cast<uint64_t>(header.live.blocks), "block"), looked) +
         functions_text(analyze::Table::of(lost), analyze::Order::kBytes, "definitely lost", header,
                        style);
}

}  // namespace mtrace::text
