#include "collect/run_reports.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include "collect/catalog.h"

namespace mtrace::collect {

std::string just_before_now() {
  using std::chrono::microseconds;
  const auto time = std::chrono::system_clock::now() - std::chrono::milliseconds(100);
  const auto since = std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(static_cast<std::time_t>(since / 1000000)), since % 1000000);
}

std::vector<std::string> reports_of(const std::string& directory, pid_t pid,
                                    const std::string& begun) {
  std::vector<Listed> found;
  for (Listed& listed : list_memlogs(directory)) {
    if (listed.pid == pid && listed.started >= begun) found.push_back(std::move(listed));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.started, a.seq) < std::tie(b.started, b.seq);
  });
  std::vector<std::string> files;
  for (const Listed& listed : found) {
    if (listed.started == found.back().started) files.push_back(listed.path);
  }
  return files;
}

size_t reports_of_others(const std::string& directory, pid_t pid, const std::string& begun) {
  const std::vector<Listed> all = list_memlogs(directory);
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const auto& listed) {
    return listed.pid != pid && listed.started >= begun;
  }));
}

}  // namespace mtrace::collect
