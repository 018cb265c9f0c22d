#include "attach/tasks.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "attach/error.h"

namespace mtrace::attach {
namespace {

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

bool is_ending(char state) { return state == '\0' || state == 'Z' || state == 'X'; }

}  // namespace

char task_state(pid_t pid, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/stat", pid, tid));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

Tasks::Tasks(pid_t pid, Restarts& restarts) : pid_(pid), restarts_(restarts) {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) {
    sigaddset(&blocked, signal);
  }
  ::sigprocmask(SIG_BLOCK, &blocked, &mask_);
  // While threads stand still this program goes before others, where it may.
  priority_ = ::getpriority(PRIO_PROCESS, 0);
  ::setpriority(PRIO_PROCESS, 0, -20);
}

Tasks::~Tasks() {
  for (const auto& [tid, state] : tasks_) {
    if (state == State::kGone) continue;
    if (state == State::kRunning) {
      ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
      // Detaching needs a stop; a thread that does not come to one is let go with this program.
      if (!wait_stopped(tid, Clock::now() + std::chrono::seconds(1))) continue;
    }
    restarts_.renew(tid);
    ::ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
  }
  ::setpriority(PRIO_PROCESS, 0, priority_);
  ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

void Tasks::seize(pid_t tid) {
  if (::ptrace(PTRACE_SEIZE, tid, nullptr, PTRACE_O_TRACESYSGOOD) == 0) {
    tasks_[tid] = State::kRunning;
    return;
  }
  const int error = errno;
  if (error == ESRCH || is_ending(task_state(pid_, tid))) return;
  throw AttachError(fmt::format("may not be traced: {} (kernel.yama.ptrace_scope says who may)",
                                std::strerror(error)));
}

bool Tasks::wait_for(pid_t tid, Clock::time_point deadline, int* status) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  for (;;) {
    const pid_t done = ::waitpid(tid, status, __WALL | WNOHANG);
    if (done == tid) return true;
    if (done < 0) {
      *status = 0;  // gone
      return true;
    }
    const auto left = deadline - Clock::now();
    if (left <= Clock::duration::zero()) return false;
    // Stops of several threads may have been told by one signal: so never for long.
    const auto wait = std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1));
    const timespec time = {0, static_cast<long>(wait.count())};
    ::sigtimedwait(&child, nullptr, &time);
  }
}

// Signals on their way are handed over: the thread then stops before their handlers begin.
bool Tasks::wait_stopped(pid_t tid, Clock::time_point deadline) {
  int status = 0;
  while (wait_for(tid, deadline, &status)) {
    if (!WIFSTOPPED(status)) {
      tasks_[tid] = State::kGone;
      return true;
    }
    if (status >> 16 == PTRACE_EVENT_STOP) {
      tasks_[tid] = State::kStopped;
      restarts_.settle(tid);
      return true;
    }
    const bool system_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    ::ptrace(PTRACE_CONT, tid, nullptr, status >> 16 != 0 || system_call ? 0 : WSTOPSIG(status));
  }
  return false;
}

bool Tasks::interrupt(pid_t tid, Clock::time_point deadline) {
  ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  if (tasks_[tid] == State::kStopped) ::ptrace(PTRACE_CONT, tid, nullptr, nullptr);
  return wait_stopped(tid, deadline) && tasks_[tid] == State::kStopped;
}

bool Tasks::stop(const std::vector<pid_t>& tids, Clock::time_point deadline) {
  for (const pid_t tid : tids) {
    if (tasks_[tid] == State::kRunning) ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  }
  for (const pid_t tid : tids) {
    if (tasks_[tid] != State::kRunning || wait_stopped(tid, deadline)) continue;
    trouble_ = fmt::format("thread {} does not stop (in state {})", tid, task_state(pid_, tid));
    return false;
  }
  return true;
}

bool Tasks::stop_all(Clock::time_point deadline) {
  if (stopped().empty()) since_ = Clock::now();
  for (bool stable = false; !stable;) {
    stable = true;
    std::vector<pid_t> running;
    const std::vector<pid_t> tids = all_tasks(pid_);
    if (tids.empty()) throw AttachError("has ended");
    for (const pid_t tid : tids) {
      const auto known = tasks_.find(tid);
      if (known == tasks_.end() || known->second == State::kGone) {
        if (is_ending(task_state(pid_, tid))) continue;
        seize(tid);
        stable = false;
      }
      if (tasks_.contains(tid)) running.push_back(tid);
    }
    if (!stop(running, deadline)) return false;
  }
  if (stopped().empty()) throw AttachError("is ending");
  return true;
}

void Tasks::resume(const std::vector<pid_t>& tids) {
  for (const pid_t tid : tids) {
    if (tasks_[tid] != State::kStopped) continue;
    // Of a process that its own job control has stopped, a thread would go on.
    tasks_[tid] = State::kRunning;
    restarts_.renew(tid);
    ::ptrace(PTRACE_CONT, tid, nullptr, nullptr);
  }
}

void Tasks::resume_others(pid_t tid) {
  std::vector<pid_t> others = stopped();
  std::erase(others, tid);
  resume(others);
}

std::vector<pid_t> Tasks::stopped() const {
  std::vector<pid_t> tids;
  for (const auto& [tid, state] : tasks_) {
    if (state == State::kStopped) tids.push_back(tid);
  }
  const auto first = std::find(tids.begin(), tids.end(), pid_);
  if (first != tids.end()) std::rotate(tids.begin(), first, first + 1);
  return tids;
}

bool Tasks::any_running() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& task) { return task.second == State::kRunning; });
}

bool Tasks::registers(pid_t tid, user_regs_struct* registers) {
  return ::ptrace(PTRACE_GETREGS, tid, nullptr, registers) == 0;
}

bool Tasks::set_registers(pid_t tid, const user_regs_struct& registers) {
  return ::ptrace(PTRACE_SETREGS, tid, nullptr, &registers) == 0;
}

void Tasks::hand_over_signals() {
  for (auto& [tid, state] : tasks_) {
    int status = 0;
    if (state != State::kRunning) continue;
    const pid_t done = ::waitpid(tid, &status, __WALL | WNOHANG);
    if (done == 0) continue;
    if (done < 0 || !WIFSTOPPED(status)) {
      state = State::kGone;
    } else {
      ::ptrace(PTRACE_CONT, tid, nullptr, status >> 16 != 0 ? 0 : WSTOPSIG(status));
    }
  }
}

bool Tasks::run_to_system_call(pid_t tid, Clock::time_point deadline) {
  int status = 0;
  int signal = 0;
  for (;;) {
    ::ptrace(PTRACE_SYSCALL, tid, nullptr, signal);
    if (!wait_for(tid, deadline, &status)) throw AttachError("does not go on in time");
    if (!WIFSTOPPED(status)) {
      tasks_[tid] = State::kGone;
      return false;
    }
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) return true;
    signal = status >> 16 != 0 ? 0 : WSTOPSIG(status);
  }
}

}  // namespace mtrace::attach
