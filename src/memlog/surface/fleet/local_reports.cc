#include "surface/fleet/local_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"
#include "util/input.h"
#include "util/text.h"

namespace mtrace::fleet {
namespace {

namespace fs = std::filesystem;

// Of a directory the files below it that may be reports.
std::vector<std::string> files_below(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (auto item = fs::recursive_directory_iterator(
           path, fs::directory_options::skip_permission_denied, error);
       !error && item != fs::recursive_directory_iterator(); item.increment(error)) {
    const std::string name = item->path().filename();
    std::error_code gone;
    if (util::is_report_name(name) && item->is_regular_file(gone)) files.push_back(item->path());
  }
  return files;
}

}  // namespace

std::vector<LocalReport> LocalReports::look() {
  std::map<std::string, Known> seen;
  for (const std::string& path : paths_) {
    if (!fs::exists(path)) {
      throw std::runtime_error(fmt::format("no file or directory {}", util::escaped(path, "")));
    }
    for (const std::string& file : files_below(path)) look_at(file, seen);
  }
  known_ = std::move(seen);
  std::vector<LocalReport> reports;
  std::set<std::string> names;
  for (const auto& [path, known] : known_) {
    if (!known.usable || !known.facts.series) continue;
    if (names.insert(known.facts.key.name()).second) reports.push_back({path, known.facts});
  }
  std::sort(reports.begin(), reports.end(), [](const LocalReport& a, const LocalReport& b) {
    return a.facts.taken != b.facts.taken ? a.facts.taken < b.facts.taken : a.path < b.path;
  });
  return reports;
}

// A report that gets its names or is compressed meanwhile is another file.
void LocalReports::look_at(const std::string& path, std::map<std::string, Known>& seen) {
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) return;
  const auto before = known_.find(path);
  if (before != known_.end()) {
    const Known& known = before->second;
    if (known.inode == state.st_ino && known.size == state.st_size &&
        known.changed.tv_sec == state.st_mtim.tv_sec &&
        known.changed.tv_nsec == state.st_mtim.tv_nsec) {
      seen[path] = known;
      return;
    }
  }
  Known known = {state.st_ino, state.st_size, state.st_mtim, false, {}};
  try {
    known.facts = read_facts(path, util::escaped(path, ""));
    known.usable = true;
  } catch (const util::FormatError& error) {
    faults_.emplace_back(error.what());
  } catch (const util::FileError& error) {
    if (error.error_number() == ENOENT) return;
    faults_.emplace_back(error.what());
  }
  seen[path] = known;
}

std::vector<std::string> LocalReports::take_faults() { return std::exchange(faults_, {}); }

std::string LocalReports::packed(const LocalReport& report) {
  util::Text file = util::read_text(report.path);
  profile::Memlog memlog = profile::read(file.path, file.text);
  if (memlog.header.resolved == profile::Resolved::kNo) {
    resolver_.resolve(memlog);
    file.text = profile::write(memlog);
  }
  std::string out;
  util::compress(file.text, [&](std::string_view piece) { out += piece; });
  return out;
}

}  // namespace mtrace::fleet
