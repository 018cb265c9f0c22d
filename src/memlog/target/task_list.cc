#include "target/task_list.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "target/proc_files.h"

namespace mtrace::target {
std::vector<pid_t> all_tasks(pid_t pid) { return ids_in(proc_path(pid, "task")); }

char task_state(pid_t pid, pid_t tid) {
  const std::vector<std::string> fields = stat_fields(task_path(pid, tid, "stat"));
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
  const std::vector<std::string> fields = stat_fields(task_path(pid, pid, "stat"));
  if (fields.size() <= kStatus) return kEnded;
  const int status = std::atoi(fields[kStatus].c_str());
  if (!WIFSIGNALED(status)) return fmt::format("{}, with status {}", kEnded, WEXITSTATUS(status));
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return name != nullptr ? fmt::format("{}, by SIG{}", kEnded, name)
                         : fmt::format("{}, by signal {}", kEnded, WTERMSIG(status));
}

std::string task_status(pid_t pid, pid_t tid, const std::string& key) {
  return status_value(read_proc(task_path(pid, tid, "status")).value_or(""), key);
}

}  // namespace mtrace::target
