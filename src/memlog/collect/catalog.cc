#include "collect/catalog.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <tuple>

#include "format/memlog.h"
#include "profile/error.h"
#include "profile/line.h"
#include "profile/text.h"

namespace mtrace::collect {
namespace {

// Long enough for the meta lines before the entries, unless the command line is huge: then the
// few keys wanted here still come first or the file is passed over.
constexpr size_t kHead = 65536;

std::optional<Listed> read_head(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  std::string head(kHead, '\0');
  struct stat state = {};
  const ssize_t got = ::fstat(file, &state) == 0 && S_ISREG(state.st_mode)
                          ? ::read(file, head.data(), head.size())
                          : -1;
  ::close(file);
  head.resize(got > 0 ? static_cast<size_t>(got) : 0);
  auto lines = profile::split(head, '\n');
  if (lines[0] != format::kMagicLine) return std::nullopt;

  Listed listed;
  listed.path = path;
  for (size_t i = 1; i + 1 < lines.size() && lines[i].starts_with('#'); ++i) {
    try {
      const profile::Field line = profile::read_meta(lines[i]);
      const auto number = [&] {
        return static_cast<int64_t>(profile::read_unsigned(line.value, INT64_MAX).value_or(0));
      };
      if (line.key == format::kKeyProgram) listed.program = profile::unescape_or_throw(line.value);
      if (line.key == format::kKeyPid) listed.pid = number();
      if (line.key == format::kKeySeq) listed.seq = number();
      if (line.key == format::kKeyLabel) listed.label = profile::unescape_or_throw(line.value);
      constexpr std::string_view kElsewhere = format::kNoteElsewhere;
      if (line.key == format::kKeyNote && line.value.starts_with(kElsewhere)) {
        listed.refused_by = profile::unescape_or_throw(line.value.substr(kElsewhere.size()));
      }
      if (line.key == format::kKeyStarted && profile::is_time(line.value))
        listed.started = line.value;
    } catch (const profile::LineError&) {
      break;  // "# end", or damage that reading it will report
    }
  }
  if (listed.started.empty() || listed.pid == 0 || listed.seq == 0) return std::nullopt;
  return listed;
}

}  // namespace

std::vector<Listed> list_memlogs(const std::string& directory) {
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(directory.c_str()), close);
  if (open == nullptr) throw profile::FileError("cannot read directory " + directory, errno);
  const std::string prefix = directory == "." ? "" : directory + '/';
  std::vector<Listed> all;
  while (const dirent* item = ::readdir(open.get())) {
    const std::string name = item->d_name;
    if (!name.ends_with(format::kSuffix)) continue;
    if (auto listed = read_head(prefix + name)) {
      all.push_back(std::move(*listed));
    }
  }
  return all;
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
  return missing && text.find('%') == std::string::npos && !text.ends_with(format::kSuffix)
             ? text
             : parent;
}

}  // namespace mtrace::collect
