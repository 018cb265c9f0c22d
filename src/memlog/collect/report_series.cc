#include "collect/report_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "collect/reports.h"

namespace mtrace::collect {

std::vector<ReportSeries> series_in(const std::vector<std::string>& files) {
  std::map<std::tuple<std::string, int64_t, std::string>, ReportSeries> processes;
  for (const std::string& file : files) {
    if (file == "-") {
      throw std::runtime_error(
          "a series of reports cannot be read from standard input: name the files");
    }
    const Listed listed = Reports::look(file);
    processes[{listed.started, listed.pid, listed.program}].push_back(listed);
  }
  std::vector<ReportSeries> out;
  for (auto& [process, series] : processes) {
    std::sort(series.begin(), series.end(), [](const auto& a, const auto& b) {
      return std::tie(a.seq, a.path) < std::tie(b.seq, b.path);
    });
    drop_contained(series);
    for (size_t i = 1; i < series.size(); ++i) {
      if (series[i].seq != series[i - 1].seq) continue;
      throw std::runtime_error(
          fmt::format("report {} appears twice: {}", series[i].seq, series[i].path));
    }
    out.push_back(std::move(series));
  }
  return out;
}

std::string missing_text(const ReportSeries& series) {
  std::string out;
  int64_t next = 1;
  for (const Listed& report : series) {
    const int64_t last = report.first - 1;
    if (next <= last) {
      out += fmt::format("{}{}", out.empty() ? "" : ", ",
                         next == last ? std::to_string(next) : fmt::format("{} to {}", next, last));
    }
    next = report.seq + 1;
  }
  return out;
}

}  // namespace mtrace::collect
