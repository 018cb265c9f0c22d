#include "target/seize.h"

#include <sys/ptrace.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace mtrace::target {
namespace {

constexpr long kEvery = 5'000'000;  // nanoseconds

// Not SIGALRM: memlog run passes on what it is sent.
int alarm_signal() { return SIGRTMAX; }

// Set while this thread is inside ptrace(); the signal handler reads it.
std::atomic<const std::function<void()>*> g_reap{nullptr};
std::atomic<unsigned> g_call{0};  // number of the current call
unsigned g_seen = 0;              // the last call that the handler saw

// Reaps only when two alarms in a row find the same call: it then takes that long.
void on_alarm(int) {
  const int error = errno;
  const std::function<void()>* reap = g_reap.load();
  if (reap != nullptr && g_seen == g_call.load()) (*reap)();
  g_seen = g_call.load();
  errno = error;
}

}  // namespace

Seizing::Seizing(std::function<void()> reap) : reap_(std::move(reap)) {
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  ::sigaction(alarm_signal(), &action, &before_);
  // memlog run blocks every signal.
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, alarm_signal());
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, &mask_);
  // Send the signal to this thread: no other thread may run the handler at the same time.
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = alarm_signal();
  event._sigev_un._tid = ::gettid();
  const itimerspec every = {{0, kEvery}, {0, kEvery}};
  armed_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  if (armed_) ::timer_settime(timer_, 0, &every, nullptr);
}

// No signal of the timer is pending once the timer is deleted: signals go to this very thread.
Seizing::~Seizing() {
  if (armed_) ::timer_delete(timer_);
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  ::sigaction(alarm_signal(), &before_, nullptr);
}

int Seizing::seize(pid_t tid, unsigned long options) {
  g_call.fetch_add(1);
  g_reap.store(&reap_);
  const long result = ::ptrace(PTRACE_SEIZE, tid, nullptr, options);
  const int error = result == 0 ? 0 : errno;
  g_reap.store(nullptr);
  return error;
}

}  // namespace mtrace::target
