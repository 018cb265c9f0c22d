#include "process/inspect/proc_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <sstream>

#include "util/text.h"

namespace mtrace::process {

std::string proc_path(pid_t pid, std::string_view file) {
  return fmt::format("/proc/{}/{}", pid, file);
}

std::string task_path(pid_t pid, pid_t tid, std::string_view file) {
  return fmt::format("/proc/{}/task/{}/{}", pid, tid, file);
}

// The read of an open file fails once the process has ended: a stream's iterators would throw.
std::optional<std::string> read_proc(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string content;
  char piece[4096];
  ssize_t got = 0;
  while ((got = ::read(file, piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) content.append(piece, static_cast<size_t>(got));
  }
  const int error = errno;
  ::close(file);
  errno = error;
  if (got < 0) return std::nullopt;
  return content;
}

std::vector<pid_t> ids_in(const std::string& directory) {
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(directory.c_str()), close);
  std::vector<pid_t> ids;
  while (const dirent* item = open == nullptr ? nullptr : ::readdir(open.get())) {
    const auto id = util::read_unsigned(item->d_name, INT_MAX);
    if (id && *id > 0) ids.push_back(static_cast<pid_t>(*id));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The second field, the name, may hold any character: it ends at the last parenthesis.
std::vector<std::string> stat_fields(const std::string& path) {
  const std::string stat = read_proc(path).value_or("");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(stat.substr(name_end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

std::string status_value(std::string_view status, std::string_view key) {
  for (const std::string_view line : util::split(status, '\n')) {
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with(':')) continue;
    const size_t value = line.find_first_not_of(" \t", key.size() + 1);
    return value == std::string_view::npos ? "" : std::string(line.substr(value));
  }
  return {};
}

uint64_t status_bytes(std::string_view status, std::string_view key) {
  constexpr uint64_t kKilobyte = 1024;
  return std::strtoull(status_value(status, key).c_str(), nullptr, 10) * kKilobyte;
}

}  // namespace mtrace::process
