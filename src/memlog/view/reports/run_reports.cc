#include "view/reports/run_reports.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/memlog.h"
#include "model/profile/writer.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/text.h"
#include "view/reports/catalog.h"

namespace mtrace::reports {
namespace {

constexpr char kLastPlace[] = "/tmp";
constexpr size_t kPart = 65536;  // bytes; more than what stands before or behind the entries

std::string normal(const std::string& directory) {
  std::error_code error;
  std::string path = std::filesystem::absolute(directory, error).lexically_normal();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// The library names a directory as MTRACE_OUTPUT does, with percent signs doubled.
std::string undoubled(std::string text) {
  for (size_t at = 0; (at = text.find("%%", at)) != std::string::npos; ++at) text.erase(at, 1);
  return text;
}

std::vector<Listed> memlogs_in(const std::string& directory) {
  try {
    return list_memlogs(directory);
  } catch (const util::FileError&) {
    return {};
  }
}

// Returns the end of a report, with the lines about its process and its library.
std::string tail_of(const std::string& path) {
  try {
    return util::Input(path).last(kPart);
  } catch (const util::FileError&) {
    return {};  // it is gone
  }
}

// Returns whether the report's program had this option.
bool has_setting(const std::string& tail, const std::string& setting) {
  const std::string text = ' ' + util::escaped(setting, " ");
  const size_t at = tail.rfind(text);
  return at != std::string::npos && at + text.size() < tail.size() &&
         (tail[at + text.size()] == ' ' || tail[at + text.size()] == '\n');
}

// Returns the most that was resident, in bytes; 0: the report does not say.
uint64_t resident_of(const std::string& tail) {
  const std::string key = fmt::format("\n# {}: ", format::kKeyRssMax);
  const size_t at = tail.rfind(key);
  if (at == std::string::npos) return 0;
  const size_t begin = at + key.size();
  const size_t end = tail.find_first_not_of("0123456789", begin);
  return util::read_unsigned(std::string_view(tail).substr(begin, end - begin)).value_or(0);
}

constexpr char kSnapshot[] = "snapshot";

uint64_t size_of(const RunProcess& process) { return std::max(process.peak, process.resident); }

std::vector<RunProcess> processes_of(std::vector<Listed> all, const std::string& setting) {
  std::map<ProcessKey, std::vector<Listed>> found;
  for (Listed& listed : all) {
    found[listed.process()].push_back(std::move(listed));
  }
  std::vector<RunProcess> processes;
  for (auto& [key, reports] : found) {
    std::sort(reports.begin(), reports.end(), [](const auto& a, const auto& b) {
      return std::tie(a.seq, a.path) < std::tie(b.seq, b.path);
    });
    // A look at the process says nothing that a report of the same number does not.
    const bool reported = std::any_of(reports.begin(), reports.end(),
                                      [](const Listed& one) { return one.trigger != kSnapshot; });
    if (reported)
      std::erase_if(reports, [](const Listed& one) { return one.trigger == kSnapshot; });
    const std::string tail = tail_of(reports.back().path);
    if (!setting.empty() && !has_setting(tail, setting)) continue;
    RunProcess process = {.program = reports.back().program,
                          .pid = reports.back().pid,
                          .peak = reports.back().peak,
                          .resident = resident_of(tail),
                          .files = {}};
    for (Listed& listed : reports) process.files.push_back(std::move(listed.path));
    processes.push_back(std::move(process));
  }
  // Of equal ones, the one that was started first.
  std::stable_sort(processes.begin(), processes.end(),
                   [](const auto& a, const auto& b) { return size_of(a) > size_of(b); });
  return processes;
}

}  // namespace

std::string just_before(double seconds_ago) {
  using std::chrono::microseconds;
  const auto time = std::chrono::system_clock::now() - std::chrono::milliseconds(100) -
                    microseconds(static_cast<int64_t>(seconds_ago * 1e6));
  const auto since = std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(static_cast<std::time_t>(since / 1000000)), since % 1000000);
}

RunReports reports_of_run(const std::string& directory, pid_t pid, const std::string& begun,
                          const std::string& setting) {
  const char* temporary = std::getenv("TMPDIR");
  const std::string wanted = normal(directory);
  RunReports out;
  std::vector<Listed> own;
  std::vector<Listed> all;
  std::set<std::string> seen;
  for (const std::string& place :
       {directory, std::string(temporary != nullptr ? temporary : ""), std::string(kLastPlace)}) {
    if (place.empty() || !seen.insert(normal(place)).second) continue;
    const bool instead = seen.size() > 1;
    for (Listed& listed : memlogs_in(place)) {
      const bool mine = listed.pid == pid;
      if (listed.started < begun) continue;
      if (instead && (listed.refused_by.empty() ||
                      (!mine && normal(undoubled(listed.refused_by)) != wanted))) {
        continue;
      }
      if (instead) {
        ++out.elsewhere;
        out.elsewhere_directory = place;
      }
      if (mine) own.push_back(listed);
      all.push_back(std::move(listed));
    }
  }
  std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) {
    return std::tie(a.started, a.seq) < std::tie(b.started, b.seq);
  });
  for (const Listed& listed : own) {
    if (listed.started == own.back().started) out.files.push_back(listed.path);
  }
  out.processes = processes_of(std::move(all), setting);
  return out;
}

bool lacks_names(const std::string& path) {
  auto input = util::Input::of_file(path);
  if (!input || input->compressed()) return false;  // names come first
  // Frames are the only lines that begin with a tab.
  return input->first(kPart).find("\n\t") != std::string::npos &&
         input->last(kPart).find(fmt::format("\n# {}: no\n", format::kKeyResolved)) !=
             std::string::npos;
}
namespace {

// File systems know the time less exactly than reports do.
constexpr time_t kSlack = 2;  // seconds

}  // namespace

std::vector<std::string> reports_since(const std::string& report) {
  const auto own = list_memlog(report);
  if (!own) return {};
  const size_t slash = report.rfind('/');
  const std::string prefix = slash == std::string::npos ? "" : report.substr(0, slash + 1);
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(prefix.empty() ? "." : prefix.c_str()),
                                                   close);
  if (open == nullptr) throw util::FileError("cannot read directory " + prefix, errno);
  const time_t since = static_cast<time_t>(util::seconds_of(own->started)) - kSlack;
  std::vector<std::string> found;
  while (const dirent* item = ::readdir(open.get())) {
    const std::string name = item->d_name;
    struct stat state = {};
    if (!name.ends_with(format::kSuffix) || name == report.substr(prefix.size()) ||
        ::fstatat(::dirfd(open.get()), item->d_name, &state, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(state.st_mode) || state.st_uid != ::geteuid() || state.st_mtime < since) {
      continue;
    }
    found.push_back(prefix + name);
  }
  return found;
}

}  // namespace mtrace::reports
