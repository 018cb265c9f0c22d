#include "collect/event_logs.h"

#include <algorithm>
#include <filesystem>

#include "format/event_log.h"

namespace mtrace::collect {

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

}  // namespace mtrace::collect
