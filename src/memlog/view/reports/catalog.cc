#include "view/reports/catalog.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/memlog.h"
#include "model/events/replay_memlog.h"
#include "model/profile/line.h"
#include "model/profile/writer.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

namespace mtrace::reports {
namespace {

// Long enough for the meta lines before the entries, unless the command line is huge: then the
// few keys wanted here still come first or the file is passed over.
constexpr size_t kHead = 65536;

std::optional<Listed> read_head(const std::string& path) {
  auto input = util::Input::of_file(path);
  if (!input) return std::nullopt;
  const std::string head = input->first(kHead);
  auto lines = util::split(head, '\n');
  if (!profile::is_first_line(lines[0])) return std::nullopt;

  Listed listed;
  listed.path = input->path();
  for (size_t i = 1; i + 1 < lines.size() && lines[i].starts_with('#'); ++i) {
    try {
      const profile::Field line = profile::read_meta(lines[i]);
      const auto number = [&] {
        return static_cast<int64_t>(util::read_unsigned(line.value, INT64_MAX).value_or(0));
      };
      if (line.key == format::kKeyProgram) listed.program = profile::unescape_or_throw(line.value);
      if (line.key == format::kKeyPid) listed.pid = number();
      if (line.key == format::kKeySeq) listed.seq = listed.first = number();
      if (line.key == format::kKeyTrigger) listed.trigger = line.value;
      if (line.key == format::kKeyMerged) {
        const std::string_view first = util::split(line.value, ' ').front();
        listed.first = static_cast<int64_t>(util::read_unsigned(first, INT64_MAX).value_or(0));
      }
      if (line.key == format::kKeyLabel) listed.label = profile::unescape_or_throw(line.value);
      constexpr std::string_view kElsewhere = format::kNoteElsewhere;
      if (line.key == format::kKeyNote && line.value.starts_with(kElsewhere)) {
        listed.refused_by = profile::unescape_or_throw(line.value.substr(kElsewhere.size()));
      }
      if (line.key == format::kKeyPeak) {
        const std::string_view bytes = util::split(line.value, ' ').front();
        listed.peak = util::read_unsigned(bytes).value_or(0);
      }
      if (line.key == format::kKeyStarted && util::is_time(line.value)) listed.started = line.value;
      if (line.key == format::kKeyTaken && util::is_time(line.value)) listed.taken = line.value;
    } catch (const profile::LineError&) {
      break;  // "# end", or damage that reading it will report
    }
  }
  if (listed.started.empty() || listed.pid == 0 || listed.seq == 0) return std::nullopt;
  return listed;
}

// A report that is compressed while the directory is read may be found by both of its names.
void drop_seen_twice(std::vector<Listed>& all) {
  absl::flat_hash_map<std::string, const Listed*> compressed;
  for (const Listed& listed : all) {
    if (listed.path.ends_with(format::kCompressedSuffix)) compressed[listed.path] = &listed;
  }
  std::vector<Listed> kept;
  for (const Listed& listed : all) {
    const auto known = compressed.find(listed.path + format::kCompressedSuffix);
    const auto same = [&](const Listed& other) {
      return listed.started == other.started && listed.pid == other.pid &&
             listed.seq == other.seq && listed.program == other.program;
    };
    if (known == compressed.end() || !same(*known->second)) kept.push_back(listed);
  }
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  kept.erase(std::unique(kept.begin(), kept.end(),
                         [](const auto& a, const auto& b) { return a.path == b.path; }),
             kept.end());
  all = std::move(kept);
}

}  // namespace

Listed listed(const profile::Memlog& memlog) {
  const profile::Header& header = memlog.header;
  return {memlog.name,
          header.program,
          header.started,
          header.label,
          header.pid,
          header.seq,
          header.peak ? header.peak->bytes : 0,
          header.merged.value_or(header.seq),
          header.trigger,
          "",
          header.taken};
}

std::vector<Listed> list_memlogs(const std::string& directory) {
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(directory.c_str()), close);
  if (open == nullptr) throw util::FileError("cannot read directory " + directory, errno);
  const std::string prefix = directory == "." ? "" : directory + '/';
  std::vector<Listed> all;
  while (const dirent* item = ::readdir(open.get())) {
    const std::string name = item->d_name;
    if (!util::is_report_name(name)) continue;
    if (auto listed = read_head(prefix + name)) {
      all.push_back(std::move(*listed));
    }
  }
  drop_seen_twice(all);
  const auto derived = [](const Listed& one) { return one.trigger == events::kEventsTrigger; };
  if (!std::all_of(all.begin(), all.end(), derived)) std::erase_if(all, derived);
  return all;
}

void drop_contained(std::vector<Listed>& reports, const std::function<void(const Listed&)>& each) {
  // Few are merged: all reports of a process may be a hundred thousand.
  std::vector<std::pair<int64_t, int64_t>> merged;  // first and last number
  for (const Listed& one : reports) {
    if (one.first != one.seq) merged.emplace_back(one.first, one.seq);
  }
  std::erase_if(reports, [&](const Listed& one) {
    const bool contained = std::any_of(merged.begin(), merged.end(), [&](const auto& other) {
      return other.first <= one.first && one.seq < other.second;
    });
    if (contained && each) each(one);
    return contained;
  });
}

std::optional<Listed> list_memlog(const std::string& path) { return read_head(path); }

std::optional<std::string> newest_report(const std::string& directory) {
  const std::vector<Listed> all = list_memlogs(directory);
  const auto newest = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.started, a.pid, a.program, a.seq, a.path) <
           std::tie(b.started, b.pid, b.program, b.seq, b.path);
  });
  if (newest == all.end()) return std::nullopt;
  return newest->path;
}

std::vector<std::string> run_until_exit(const std::string& path) {
  const std::optional<Listed> last = list_memlog(path);
  if (!last || last->trigger != "exit") return {};
  const std::string parent = std::filesystem::path(path).parent_path();
  std::vector<Listed> run = list_memlogs(parent.empty() ? "." : parent);
  std::erase_if(run, [&](const Listed& one) {
    return one.pid != last->pid || one.started != last->started || one.program != last->program ||
           one.seq > last->seq;
  });
  std::sort(run.begin(), run.end(), [](const Listed& a, const Listed& b) { return a.seq < b.seq; });
  std::vector<std::string> files;
  int64_t next = 1;
  for (const Listed& one : run) {
    if (one.first != next) return {};
    next = one.seq + 1;
    files.push_back(one.path);
  }
  return files;
}

std::string report_directory() {
  const char* output = std::getenv("MTRACE_OUTPUT");
  if (output == nullptr || *output == '\0') return ".";
  struct stat state = {};
  if (::stat(output, &state) == 0 && S_ISDIR(state.st_mode)) return output;
  // A template: its directory, as long as that is not part of the template.
  const std::string text = output;
  const size_t slash = text.rfind('/');
  if (slash == std::string::npos || text.substr(0, slash).find('%') != std::string::npos) {
    return ".";
  }
  const std::string parent = slash == 0 ? "/" : text.substr(0, slash);
  // As the library has it: of a path in no directory the last part is no template for names.
  const bool missing = slash != 0 && ::stat(parent.c_str(), &state) != 0;
  return missing && text.find('%') == std::string::npos && !util::is_report_name(text) ? text
                                                                                       : parent;
}

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
  using std::chrono::nanoseconds;
  const auto time = std::chrono::system_clock::now() - std::chrono::milliseconds(100) -
                    nanoseconds(static_cast<int64_t>(seconds_ago * 1e9));
  const auto since = std::chrono::duration_cast<nanoseconds>(time.time_since_epoch());
  return util::time_text(static_cast<uint64_t>(since.count()));
}

RunReports reports_of_run(const std::string& directory, pid_t pid, const std::string& begun,
                          const std::string& setting) {
  const char* temporary = std::getenv("TMPDIR");
  const std::string wanted = normal(directory);
  RunReports out;
  std::vector<Listed> own;
  std::vector<Listed> all;
  std::set<std::string> seen, elsewhere;
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
        elsewhere.insert(listed.path);
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
  for (const RunProcess& process : out.processes)
    for (const std::string& file : process.files) out.elsewhere += elsewhere.count(file);
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
