#include "collect/left_reports.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <memory>

#include "collect/catalog.h"
#include "format/memlog.h"
#include "profile/error.h"

namespace mtrace::collect {
namespace {

// File systems know the time less exactly than reports do.
constexpr time_t kSlack = 2;  // seconds

// Seconds since 1970 of 2026-11-20T20:15:00.000000Z.
time_t seconds_of(const std::string& time) {
  tm parts = {};
  return ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr ? 0 : ::timegm(&parts);
}

}  // namespace

std::vector<std::string> reports_since(const std::string& report) {
  const auto own = list_memlog(report);
  if (!own) return {};
  const size_t slash = report.rfind('/');
  const std::string prefix = slash == std::string::npos ? "" : report.substr(0, slash + 1);
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(prefix.empty() ? "." : prefix.c_str()),
                                                   close);
  if (open == nullptr) throw profile::FileError("cannot read directory " + prefix, errno);
  const time_t since = seconds_of(own->started) - kSlack;
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

}  // namespace mtrace::collect
