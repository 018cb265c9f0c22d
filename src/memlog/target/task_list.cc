#include "target/task_list.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace mtrace::target {
namespace {

// Returns the fields of a thread's stat from the third (the state) on; empty: the thread is gone.
std::vector<std::string> stat_fields(pid_t pid, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/stat", pid, tid));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

}  // namespace

std::vector<pid_t> all_tasks(pid_t pid) {
  std::vector<pid_t> tids;
  DIR* directory = ::opendir(fmt::format("/proc/{}/task", pid).c_str());
  if (directory == nullptr) return tids;
  while (const dirent* entry = ::readdir(directory)) {
    const pid_t tid = std::atoi(entry->d_name);
    if (tid > 0) tids.push_back(tid);
  }
  ::closedir(directory);
  return tids;
}

char task_state(pid_t pid, pid_t tid) {
  const std::vector<std::string> fields = stat_fields(pid, tid);
  return fields.empty() ? '\0' : fields[0][0];
}

// A process may continue in other threads after its first thread has ended.
std::string how_it_ended(pid_t pid) {
  constexpr char kEnded[] = "has ended meanwhile";
  constexpr size_t kStatus = 52 - 3;
  const std::vector<pid_t> tids = all_tasks(pid);
  const bool goes_on = std::any_of(tids.begin(), tids.end(),
                                   [&](pid_t tid) { return !is_ending(task_state(pid, tid)); });
  if (goes_on) return {};
  const std::vector<std::string> fields = stat_fields(pid, pid);
  if (fields.size() <= kStatus) return kEnded;
  const int status = std::atoi(fields[kStatus].c_str());
  if (!WIFSIGNALED(status)) return fmt::format("{}, with status {}", kEnded, WEXITSTATUS(status));
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return name != nullptr ? fmt::format("{}, by SIG{}", kEnded, name)
                         : fmt::format("{}, by signal {}", kEnded, WTERMSIG(status));
}

std::string task_status(pid_t pid, pid_t tid, const std::string& key) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/status", pid, tid));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key + ":")) continue;
    const size_t value = line.find_first_not_of(" \t", key.size() + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

}  // namespace mtrace::target
