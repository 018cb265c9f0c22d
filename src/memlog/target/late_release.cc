#include "target/late_release.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "target/task_list.h"

namespace mtrace::target {
namespace {

struct Task {
  pid_t pid;
  pid_t tid;
};

std::vector<Task>& late() {
  static std::vector<Task> tasks;
  return tasks;
}

// Returns the signal that a stopped thread was about to be given; 0: it has stopped for another
// reason; -1: it has not stopped.
int signal_of(pid_t tid) {
  siginfo_t info = {};
  if (::ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) != 0) return errno == EINVAL ? 0 : -1;
  const bool event = info.si_code > 0 && (info.si_code & 0xff) == SIGTRAP;
  return event ? 0 : info.si_signo;
}

bool is_released(const Task& task) {
  const int signal = signal_of(task.tid);
  if (signal >= 0 && ::ptrace(PTRACE_DETACH, task.tid, nullptr, signal) == 0) return true;
  return std::atoi(task_status(task.pid, task.tid, "TracerPid").c_str()) != ::getpid();
}

}  // namespace

void release_later(pid_t pid, pid_t tid) { late().push_back({pid, tid}); }

void release_late() { std::erase_if(late(), is_released); }

}  // namespace mtrace::target
