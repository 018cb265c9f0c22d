#include "view/reports/companions.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "format/event_log.h"
#include "format/timeline.h"

namespace mtrace::reports {

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
