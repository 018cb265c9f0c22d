#include "process/ptrace/interruption.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <string>

#include "process/inspect/error.h"
#include "process/inspect/process.h"
#include "process/inspect/system_calls.h"
#include "process/inspect/target_memory.h"
#include "process/ptrace/restarts.h"
#include "process/ptrace/tasks.h"

namespace mtrace::process {
namespace {

constexpr int kCaught[] = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t g_caught = 0;
bool g_catching = false;
thread_local int t_uninterrupted = 0;

void on_signal(int signal) { g_caught = signal; }

std::atomic<int> g_outlives = 0;

// 0: none.
int waiting_signal() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (sigismember(&pending, signal) == 1) return signal;
  }
  return 0;
}

struct sigaction g_before[std::size(kCaught)];

}  // namespace

bool interrupted() { return t_uninterrupted == 0 && (g_caught != 0 || waiting_signal() != 0); }

void end_if_interrupted() {
  const int signal = g_outlives == 0 ? waiting_signal() : 0;
  if (signal == 0) return;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

void check_interruption() {
  if (interrupted()) throw AttachError("is left alone: a signal has interrupted memlog");
}

void catch_interruption() {
  if (g_catching) return;
  g_catching = true;
  for (size_t i = 0; i < std::size(kCaught); ++i) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    ::sigaction(kCaught[i], nullptr, &g_before[i]);
    if (g_before[i].sa_handler != SIG_IGN) ::sigaction(kCaught[i], &action, nullptr);
  }
}

void stop_catching() {
  if (!g_catching) return;
  g_catching = false;
  for (size_t i = 0; i < std::size(kCaught); ++i) ::sigaction(kCaught[i], &g_before[i], nullptr);
}
int caught_signal() { return g_caught; }

Uninterrupted::Uninterrupted() { ++t_uninterrupted; }
Uninterrupted::~Uninterrupted() { --t_uninterrupted; }

Outlives::Outlives() { ++g_outlives; }
Outlives::~Outlives() { --g_outlives; }
namespace {

bool blocks(pid_t pid, pid_t tid, int signal) {
  const std::string mask = task_status(pid, tid, "SigBlk");
  return mask.empty() || (std::strtoull(mask.c_str(), nullptr, 16) >> (signal - 1) & 1) != 0;
}

}  // namespace

void send_held(pid_t pid, int signal, const std::function<bool()>& is_same,
               std::chrono::milliseconds timeout) {
  // Without a cave there is no room for restart code, so calls with a time limit end early. The
  // signal itself ends them early, too.
  const TargetMemory memory(pid);
  Restarts restarts(pid, memory, {});
  Tasks tasks(pid, restarts);
  if (!tasks.stop_all(Clock::now() + timeout)) throw AttachError(tasks.trouble());
  if (!is_same()) throw AttachError("has executed another program (exec)");
  check_signal_return(pid, tasks.stopped());
  for (const pid_t tid : tasks.stopped()) {
    if (!blocks(pid, tid, signal) && ::syscall(SYS_tgkill, pid, tid, signal) == 0) return;
  }
  throw AttachError("blocks the signal in every thread");
}

}  // namespace mtrace::process
