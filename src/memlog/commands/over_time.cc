#include "commands/over_time.h"

#include <algorithm>
#include <optional>

#include "collect/catalog.h"
#include "export/timeline.h"
#include "terminal/progress.h"

namespace mtrace::cli {
namespace {

using exporting::Timeline;

Timeline timeline(const std::string& format, const analyze::Filter& filter,
                  const analyze::Table& table) {
  std::optional<Timeline::Ids> chosen;
  if (filter.chooses_rows()) {
    chosen.emplace();
    for (const analyze::Row& row : table.rows()) chosen->insert(row.stack);
  }
  const auto kind = format == "massif" ? Timeline::Format::kMassif : Timeline::Format::kHeaptrack;
  return {kind, filter.frames, std::move(chosen)};
}

}  // namespace

bool knows_time(const std::string& format) { return format == "massif" || format == "heaptrack"; }

std::string text_over_time(const std::string& format, const std::vector<std::string>& files,
                           collect::Reports& reports, const analyze::Table& table) {
  std::vector<collect::Listed> series;
  series.reserve(files.size());
  for (const std::string& file : files) series.push_back(collect::Reports::look(file));
  std::sort(series.begin(), series.end(),
            [](const auto& a, const auto& b) { return a.seq < b.seq; });
  Timeline out = timeline(format, reports.filter(), table);
  analyze::LeftOut counted;  // already
  terminal::Progress progress(series.size());
  for (const collect::Listed& report : series) {
    out.add(reports.read_series(report.path, counted));
    progress.step();
  }
  return out.finish();
}

std::string text_over_time(const std::string& format, const profile::Memlog& memlog,
                           const collect::Reports& reports, const analyze::Table& table) {
  Timeline out = timeline(format, reports.filter(), table);
  out.add(memlog);
  return out.finish();
}

}  // namespace mtrace::cli
