#include "view/reports/reports.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/event_log.h"
#include "format/memlog.h"
#include "format/timeline.h"
#include "model/profile/reader.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/screen.h"
#include "view/reports/catalog.h"

namespace mtrace::reports {
namespace {

// The newest report of a directory, or all of them.
std::vector<std::string> files_in(const std::string& directory, bool all) {
  if (all) {
    std::vector<std::string> files;
    for (const Listed& listed : list_memlogs(directory)) files.push_back(listed.path);
    if (!files.empty()) return files;
  } else if (const auto newest = newest_report(directory)) {
    return {*newest};
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (util::is_report_name(entry.path().filename().string()) &&
        ::access(entry.path().c_str(), R_OK) != 0) {
      throw util::FileError("cannot open " + entry.path().string(), errno);
    }
  }
  throw util::NotFound(fmt::format("no report in {}: memlog run PROGRAM makes one",
                                   directory == "." ? "the current directory" : directory));
}

}  // namespace

Reports::Reports(ReadOptions options)
    : filter_(std::move(options.filter)),
      resolver_(std::move(options.symbols)),
      resolves_(options.resolve),
      partial_(options.partial) {}

std::vector<std::string> Reports::files(const std::vector<std::string>& operands, bool all) {
  if (operands.empty()) return files_in(report_directory(), all);
  std::vector<std::string> files;
  for (const std::string& operand : operands) {
    struct stat state = {};
    if (::stat(operand.c_str(), &state) != 0 || !S_ISDIR(state.st_mode)) {
      files.push_back(operand);
      continue;
    }
    const std::vector<std::string> some = files_in(operand, all);
    files.insert(files.end(), some.begin(), some.end());
  }
  return files;
}

void Reports::finish(profile::Memlog& memlog, analyze::FilteredOut& left_out) {
  if (resolves_ && symbols::Symbolizer::is_needed(memlog)) resolver_.resolve(memlog);
  left_out.add(filter_.apply(memlog));
}

std::unique_ptr<profile::Pieces> Reports::pieces(const std::string& file) const {
  if (!is_large(file)) return nullptr;
  auto pieces = std::make_unique<profile::Pieces>(file);
  const bool named = !resolves_ || pieces->head().header.resolved == profile::Resolved::kYes;
  return named ? std::move(pieces) : nullptr;
}

std::optional<Report> Reports::read(const std::string& file) {
  const util::Progress progress(1);
  if (auto parts = partial_ ? nullptr : pieces(file)) {
    const profile::Header& header = parts->head().header;
    if (!filter_.takes(header.seq, header.label)) return std::nullopt;
    return Report(std::move(parts), filter_);
  }
  std::optional<profile::CutShort> cut;
  profile::Memlog memlog = partial_ ? profile::read_partly(file, cut) : profile::read_path(file);
  if (!filter_.takes(memlog.header.seq, memlog.header.label)) return std::nullopt;
  analyze::FilteredOut left_out;
  if (cut) {
    left_out = filter_.apply(memlog);
  } else {
    finish(memlog, left_out);
  }
  return Report(std::move(memlog), left_out, cut);
}

profile::Memlog Reports::read_series(const std::string& file, analyze::FilteredOut& left_out) {
  profile::Memlog memlog = profile::read_path(file, &known_);
  finish(memlog, left_out);
  return memlog;
}

Listed Reports::look(const std::string& file) {
  if (auto listed = list_memlog(file)) return *listed;
  return listed(profile::read_path(file));  // says what is wrong with it
}

std::vector<Found> Reports::find(const std::vector<std::string>& files) {
  std::vector<Found> out;
  for (const std::string& file : files) {
    Found found;
    if (file == "-") {
      found.memlog = std::make_shared<profile::Memlog>(profile::read_path(file));
      found.listed = listed(*found.memlog);
    } else {
      found.listed = look(file);
    }
    if (filter_.takes(found.listed.seq, found.listed.label)) out.push_back(std::move(found));
  }
  if (out.empty()) throw util::NotFound(kNoneChosen);
  return out;
}

std::vector<analyze::ProcessSum> Reports::sum(std::vector<Found> found, bool chosen,
                                              analyze::FilteredOut& left_out) {
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tuple(a.listed.process(), a.listed.seq, a.listed.path) <
           std::tuple(b.listed.process(), b.listed.seq, b.listed.path);
  });
  // Where merging was cut short, reports are there that another one contains.
  const std::vector<Found> all = found;
  std::erase_if(found, [&](const Found& one) {
    return std::any_of(all.begin(), all.end(), [&](const Found& other) {
      return other.listed.process() == one.listed.process() &&
             other.listed.first != other.listed.seq && other.listed.first <= one.listed.first &&
             one.listed.seq < other.listed.seq;
    });
  });
  std::vector<analyze::ProcessSum> sums;
  std::optional<analyze::Summing> summing;
  int64_t last = 0;
  util::Progress progress(found.size());
  for (size_t i = 0; i < found.size(); ++i, progress.step()) {
    if (!summing) summing.emplace(chosen);
    // Of several that nobody asked for one is enough.
    const int64_t seq = found[i].listed.seq;
    if ((found[i].asked || seq != last) && add(found[i], *summing, left_out)) last = seq;
    if (i + 1 < found.size() && found[i].listed.process() == found[i + 1].listed.process()) {
      continue;
    }
    sums.push_back(summing->finish());
    summing.reset();
    last = 0;
  }
  return sums;
}

Report Reports::read(Found& found) {
  if (found.memlog == nullptr) {
    if (auto parts = pieces(found.listed.path)) return {std::move(parts), filter_};
  }
  analyze::FilteredOut left_out;
  profile::Memlog memlog = read_series(found, left_out);
  return {std::move(memlog), left_out};
}

profile::Memlog Reports::read_series(Found& found, analyze::FilteredOut& left_out) {
  if (found.memlog == nullptr) return read_series(found.listed.path, left_out);
  const std::shared_ptr<profile::Memlog> memlog = std::move(found.memlog);
  finish(*memlog, left_out);
  return std::move(*memlog);
}

bool Reports::add(Found& found, analyze::Summing& summing, analyze::FilteredOut& left_out) {
  try {
    summing.add(read_series(found, left_out));
    return true;
  } catch (const util::FormatError&) {
    if (found.asked) throw;
    return false;  // if it is needed it will be missed
  }
}

std::vector<analyze::ProcessSum> Reports::sum(const std::vector<std::string>& files,
                                              analyze::FilteredOut& left_out) {
  return sum(find(files), filter_.chooses_reports(), left_out);
}

std::string title(const profile::Memlog& memlog) {
  return fmt::format("==> {} <==\n", memlog.name);
}
namespace {

// Bytes of text; what is smaller is read once, not twice.
constexpr size_t kLarge = 8 << 20;

}  // namespace

void Report::each(const profile::Piece& action) {
  if (pieces_ == nullptr) return action(memlog_);
  left_out_ = {};
  pieces_->each([&](profile::Memlog& piece) {
    left_out_.add(filter_->apply(piece));
    action(piece);
  });
}

bool is_large(const std::string& path) {
  if (path == "-") return false;
  const auto input = util::Input::of_file(path);
  return input && input->expected_size() >= kLarge;
}

std::vector<ReportSeries> series_in(const std::vector<std::string>& files) {
  std::map<ProcessKey, ReportSeries> processes;
  for (const std::string& file : files) {
    if (file == "-") {
      throw std::runtime_error(
          "a series of reports cannot be read from standard input: name the files");
    }
    const Listed listed = Reports::look(file);
    processes[listed.process()].push_back(listed);
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
                   analyze::FilteredOut& left_out) {
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
                    analyze::FilteredOut& left_out) {
  return delta_set_of(reports.find(files), reports, left_out);
}

ReportSet delta_set_of(std::vector<Found> found, Reports& reports, analyze::FilteredOut& left_out) {
  ReportSet set;
  set.processes = reports.sum(std::move(found), true, left_out);
  return finish(std::move(set), reports.filter().frames);
}

std::vector<std::string> event_logs(const std::string& path) {
  std::vector<std::string> paths;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    if (path.ends_with(format::kEventsSuffix)) paths.push_back(path);
    return paths;
  }
  for (const auto& file : std::filesystem::directory_iterator(path, ignored)) {
    const std::string found = path == "." ? file.path().filename() : file.path();
    if (found.ends_with(format::kEventsSuffix)) paths.push_back(found);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::optional<profile::Timeline> timeline_beside(const std::string& path,
                                                 const profile::Header& header,
                                                 std::string* found) {
  const size_t slash = path.rfind('/');
  const std::string prefix = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const auto close = [](DIR* directory) { ::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> all(::opendir(prefix.empty() ? "." : prefix.c_str()),
                                                  close);
  const std::string part = fmt::format("-{}.", header.pid);
  while (const dirent* entry = all != nullptr ? ::readdir(all.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (!name.ends_with(format::kTimelineSuffix) || name.find(part) == std::string::npos) continue;
    try {
      profile::Timeline timeline = profile::read_timeline(prefix + name);
      if (timeline.pid != header.pid || timeline.started != header.started) continue;
      if (found != nullptr) *found = prefix + name;
      return timeline;
    } catch (const std::runtime_error&) {
      continue;  // of another program, or damaged: the reports say enough without it
    }
  }
  return std::nullopt;
}

}  // namespace mtrace::reports
