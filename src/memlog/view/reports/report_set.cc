#include "view/reports/report_set.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <tuple>

#include "util/error.h"
#include "view/reports/catalog.h"

namespace mtrace::reports {
namespace {

std::string directory_of(const std::string& file) {
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, std::max<size_t>(slash, 1));
}

// Adds those reports of the processes in `found` that came before the last one there and are not
// among them, from their directories.
void add_earlier(std::vector<Found>& found) {
  std::map<ProcessKey, std::set<int64_t>> known;
  std::set<std::string> directories;
  for (const Found& report : found) {
    known[report.listed.process()].insert(report.listed.seq);
    if (report.memlog == nullptr) directories.insert(directory_of(report.listed.path));
  }
  const bool complete = std::all_of(known.begin(), known.end(), [](const auto& process) {
    return *process.second.rbegin() == static_cast<int64_t>(process.second.size());
  });
  if (complete) return;
  for (const std::string& directory : directories) {
    for (Listed& listed : list_memlogs(directory)) {
      const auto process = known.find(listed.process());
      if (process == known.end()) continue;
      const std::set<int64_t>& numbers = process->second;
      if (listed.seq > *numbers.rbegin() || numbers.count(listed.seq) != 0) continue;
      found.push_back({std::move(listed), nullptr, false});
    }
  }
}

ReportSet finish(ReportSet set, const analyze::FrameRange& frames) {
  for (const analyze::ProcessSum& process : set.processes) {
    set.table.merge(process.table, frames);
    analyze::add_to(set.total, process.total);
  }
  // What was allocated and freed again is in neither of two sets.
  analyze::drop_empty(set.table.rows(), analyze::Order::kBytes);
  return set;
}

}  // namespace

std::vector<std::string> files_of(const std::string& operand) {
  struct stat state = {};
  if (::stat(operand.c_str(), &state) == 0 && S_ISDIR(state.st_mode)) {
    std::vector<std::string> files;
    for (const Listed& listed : list_memlogs(operand)) {
      files.push_back(listed.path);
    }
    if (files.empty()) throw util::NotFound(fmt::format("no report in {}", operand));
    return files;
  }
  if (operand.find_first_of("*?[") == std::string::npos || ::lstat(operand.c_str(), &state) == 0) {
    return {operand};
  }
  glob_t found = {};
  const std::unique_ptr<glob_t, decltype(&::globfree)> release(&found, ::globfree);
  if (::glob(operand.c_str(), 0, nullptr, &found) != 0 || found.gl_pathc == 0) {
    throw util::NotFound(fmt::format("no file matches {}", operand));
  }
  return {found.gl_pathv, found.gl_pathv + found.gl_pathc};
}

std::vector<std::string> files_of(const std::vector<std::string>& operands) {
  std::vector<std::string> files;
  for (const std::string& operand : operands) {
    for (std::string& file : files_of(operand)) files.push_back(std::move(file));
  }
  return files;
}

ReportSet live_set(const std::vector<std::string>& files, Reports& reports,
                   analyze::LeftOut& left_out) {
  std::vector<Found> found = reports.find(files);
  add_earlier(found);
  ReportSet set;
  set.processes = reports.sum(std::move(found), false, left_out);
  for (const analyze::ProcessSum& process : set.processes) {
    if (!process.incomplete.empty()) {
      throw std::runtime_error(fmt::format("{}: cannot tell what is live: {}", files.back(),
                                           process.incomplete.front()));
    }
  }
  return finish(std::move(set), reports.filter().frames);
}

ReportSet delta_set(const std::vector<std::string>& files, Reports& reports,
                    analyze::LeftOut& left_out) {
  return delta_set_of(reports.find(files), reports, left_out);
}

ReportSet delta_set_of(std::vector<Found> found, Reports& reports, analyze::LeftOut& left_out) {
  ReportSet set;
  set.processes = reports.sum(std::move(found), true, left_out);
  return finish(std::move(set), reports.filter().frames);
}

}  // namespace mtrace::reports
