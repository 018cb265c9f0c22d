#include "view/reports/merged_reports.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "format/memlog.h"
#include "model/events/replay_memlog.h"
#include "model/profile/line.h"
#include "model/profile/reader.h"
#include "model/profile/report_file.h"
#include "model/profile/writer.h"
#include "model/symbols/symbolizer.h"
#include "util/text.h"
#include "view/analyze/sum.h"

namespace mtrace::reports {
namespace {

using profile::Field;
using profile::Memlog;

// A row is one entry of each report.
profile::Entry entry_of(analyze::Row& row) {
  profile::Entry entry;
  entry.kind = row.kind;
  entry.bytes = row.bytes;
  entry.blocks = row.blocks;
  entry.tells_live = row.live.has_value();
  entry.live = row.live.value_or(0);
  entry.activity = {row.allocations,
                    row.allocated_bytes,
                    row.frees,
                    row.freed_bytes,
                    row.temporary,
                    row.short_lived,
                    {row.lifetimes.least, row.lifetimes.mean(), row.lifetimes.most}};
  entry.age = row.age;
  entry.slack = row.slack;
  entry.peak = row.peak;
  entry.call = row.call;
  entry.stack = row.stack;
  std::string further;
  for (const Field& field : row.further) further += fmt::format("\t{}={}", field.key, field.value);
  entry.fields = profile::fields_of(entry, further);
  entry.frames = std::move(row.frames);
  entry.cut = row.cut;
  return entry;
}

// Replaces the lines about modules by those of all reports.
void put_modules(Memlog& memlog) {
  std::vector<Field>& lines = memlog.after;
  auto at = std::find_if(lines.begin(), lines.end(),
                         [](const Field& line) { return line.key == format::kKeyModule; });
  const auto place = at - lines.begin();
  std::erase_if(lines, [](const Field& line) { return line.key == format::kKeyModule; });
  std::vector<Field> modules;
  for (const profile::Module& module : memlog.modules) {
    if (module.described) modules.push_back({format::kKeyModule, profile::module_text(module)});
  }
  lines.insert(lines.begin() + std::min<std::ptrdiff_t>(place, std::ssize(lines)), modules.begin(),
               modules.end());
}

void set_line(Memlog& memlog, const char* key, const std::string& value) {
  for (Field& line : memlog.before) {
    if (line.key == key) line.value = value;
  }
}

// Returns the sum of `reports`, which are in order, as one report in the place of the last.
Memlog merged(std::vector<Memlog> reports, int64_t first) {
  analyze::Summing summing(false, analyze::Rows::kEntries);
  profile::Resolved resolved = profile::Resolved::kYes;
  for (const Memlog& report : reports) {
    resolved = std::min(resolved, report.header.resolved);
    summing.add(report);
  }
  analyze::ProcessSum sum = summing.finish();
  Memlog out = std::move(reports.back());
  out.modules = sum.table.modules();
  out.entries.clear();
  analyze::sort(sum.table.rows(), analyze::Order::kBytes);
  for (analyze::Row& row : sum.table.rows()) out.entries.push_back(entry_of(row));
  set_line(out, format::kKeyDelta,
           fmt::format("{:+} bytes {:+} blocks", sum.total.bytes, sum.total.blocks));
  put_modules(out);
  set_resolved(out, resolved);
  std::erase_if(out.before, [](const Field& line) { return line.key == format::kKeyMerged; });
  const auto seq = std::find_if(out.before.begin(), out.before.end(),
                                [](const Field& line) { return line.key == format::kKeySeq; });
  out.before.insert(seq + 1, {format::kKeyMerged, fmt::format("{} to {}", first, out.header.seq)});
  for (const Memlog& report : reports) {
    for (const std::string& note : report.header.notes) {
      if (!note.starts_with(format::kResident)) add_note(out, note);  // that of the last holds
    }
  }
  return out;
}

bool is_numbered(const Listed& listed) {
  return listed.trigger != "recovered" && listed.trigger != "snapshot" &&
         listed.trigger != events::kEventsTrigger;
}

size_t merge_process(std::vector<Listed> reports, size_t keep) {
  std::sort(reports.begin(), reports.end(),
            [](const Listed& a, const Listed& b) { return a.seq < b.seq; });
  drop_contained(reports, [](const Listed& left) { ::unlink(left.path.c_str()); });
  if (reports.size() <= keep + 1 || reports.front().first != 1) return 0;
  reports.resize(reports.size() - keep);
  symbols::Symbolizer resolver({});
  std::vector<Memlog> memlogs;
  for (size_t i = 0; i < reports.size(); ++i) {
    // One is missing: the sum is not to be had.
    if (i != 0 && reports[i].first != reports[i - 1].seq + 1) return 0;
    memlogs.push_back(profile::read_path(reports[i].path));
    if (memlogs.back().header.resolved == profile::Resolved::kNo) resolver.resolve(memlogs.back());
  }
  const std::string text = profile::write(merged(std::move(memlogs), reports.front().first));
  const std::string& path = reports.back().path;
  profile::read(path, text);  // throws before anything is lost
  profile::write_report(path, text, profile::is_compressed_name(path));
  for (size_t i = 0; i + 1 < reports.size(); ++i) ::unlink(reports[i].path.c_str());
  return reports.size() - 1;
}

}  // namespace

size_t merge_oldest(const std::string& directory, size_t keep,
                    const std::function<bool(const Listed&)>& wanted) {
  std::map<ProcessKey, std::vector<Listed>> processes;
  for (Listed& listed : list_memlogs(directory)) {
    if (!is_numbered(listed) || !wanted(listed)) continue;
    processes[listed.process()].push_back(std::move(listed));
  }
  size_t count = 0;
  for (auto& [process, reports] : processes) count += merge_process(std::move(reports), keep);
  return count;
}

}  // namespace mtrace::reports
