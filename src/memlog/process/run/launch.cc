#include "process/run/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>

#include "process/inspect/process.h"
#include "process/ptrace/interruption.h"
#include "process/ptrace/tasks.h"

namespace mtrace::process {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Blocks all signals and sets SIGCHLD to its default. The destructor restores both.
class SignalState {
 public:
  SignalState() {
    sigset_t all;
    ::sigfillset(&all);
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &standard, &child_);
    ::sigprocmask(SIG_SETMASK, &all, &mask_);
  }
  ~SignalState() { restore(); }
  SignalState(const SignalState&) = delete;
  SignalState& operator=(const SignalState&) = delete;

  void restore() const {
    ::sigaction(SIGCHLD, &child_, nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_;
  struct sigaction child_ = {};
  Outlives program_;
};

void pass_on(pid_t pid, const siginfo_t& info) {
  const int signal = info.si_signo;
  // The kernel has already sent signals from the terminal to the whole foreground group.
  if (info.si_code > 0 && signal != SIGCHLD && ::getpgid(pid) == ::getpgrp()) return;
  if (info.si_code == SI_QUEUE) {
    ::sigqueue(pid, signal, info.si_value);
  } else {
    ::kill(pid, signal);
  }
}

// Returns the status if the child has ended. When the terminal has stopped the child, stops this
// process, too.
std::optional<int> look(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG | WUNTRACED) == pid) {
    if (!WIFSTOPPED(status)) return status;
    const int signal = WSTOPSIG(status);
    if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) continue;
    ::kill(::getpid(), SIGSTOP);
    ::kill(pid, SIGCONT);
  }
  return std::nullopt;
}

// A tick and when it is due next.
struct Pending {
  const Tick* tick;
  Clock::time_point next;
};

// Waits for a signal until `deadline`; without one for ever. Returns it, or a number below 0.
int wait_for_signal(std::optional<Clock::time_point> deadline, siginfo_t& info) {
  sigset_t all;
  ::sigfillset(&all);
  if (!deadline) return ::sigwaitinfo(&all, &info);
  const auto left = std::max(Clock::duration::zero(), *deadline - Clock::now());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec time = {
      seconds.count(),
      std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds).count()};
  return ::sigtimedwait(&all, &info, &time);
}

int wait_for(pid_t pid, const Ticks& ticks) {
  std::vector<Pending> pending;
  for (const Tick& tick : ticks) {
    if (tick.every.count() != 0) pending.push_back({&tick, Clock::now() + tick.every});
  }
  for (;;) {
    if (const auto status = look(pid)) return *status;
    std::optional<Clock::time_point> deadline;
    for (const Pending& one : pending) {
      if (!deadline || one.next < *deadline) deadline = one.next;
    }
    siginfo_t info = {};
    const int got = wait_for_signal(deadline, info);
    if (got > 0 && got != SIGCHLD) pass_on(pid, info);
    if (got == SIGCHLD) release_late();
    for (Pending& one : pending) {
      if (Clock::now() < one.next) continue;
      if (interrupted()) break;  // the program gets the signal first
      try {
        one.tick->action(pid);
      } catch (const std::exception&) {
        // Ignore errors of the action: the program must be waited for in any case.
      }
      one.next = std::max(one.next + one.tick->every, Clock::now());
    }
  }
}

}  // namespace

Ended launch(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const Ticks& ticks) {
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  // A successful exec closes this pipe; a failed one writes errno to it.
  int trouble[2];
  if (::pipe2(trouble, O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  const SignalState signals;
  const Clock::time_point start = Clock::now();
  Ended ended;
  ended.pid = ::fork();
  if (ended.pid == 0) {
    signals.restore();
    ::execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    (void)!::write(trouble[1], &error, sizeof error);
    ::_exit(127);
  }
  const int error = errno;
  ::close(trouble[1]);
  if (ended.pid < 0) {
    ::close(trouble[0]);
    throw std::runtime_error(std::string("cannot make a process: ") + std::strerror(error));
  }
  if (::read(trouble[0], &ended.start_error, sizeof ended.start_error) <= 0) ended.start_error = 0;
  ::close(trouble[0]);
  ended.status = wait_for(ended.pid, ticks);
  ended.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return ended;
}

void end_by(int signal) {
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, signal);
  ::sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  ::raise(signal);
}

std::string end_text(int status) {
  if (WIFEXITED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return fmt::format("was killed by SIG{} ({})", signal_name(signal), ::strsignal(signal));
}

}  // namespace mtrace::process
