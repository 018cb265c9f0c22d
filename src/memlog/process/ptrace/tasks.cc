#include "process/ptrace/tasks.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/inspect/process.h"
#include "process/ptrace/safe_point.h"
#include "util/machine.h"

namespace mtrace::process {
namespace {

// How long to wait for a thread that is to be released, and how often.
constexpr auto kGoodbye = std::chrono::seconds(1);
constexpr int kGoodbyes = 5;

bool is_own_child(pid_t pid) {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// Returns whether a thread has ended and can be waited for. The kernel tells a tracer of stops,
// too, whatever it asks for.
bool has_ended(pid_t tid) {
  siginfo_t info = {};
  const int found =
      ::waitid(P_PID, static_cast<id_t>(tid), &info, WEXITED | WNOHANG | WNOWAIT | __WALL);
  return found == 0 && info.si_pid == tid &&
         (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);
}

}  // namespace

Tasks::Tasks(pid_t pid, Restarts& restarts)
    : pid_(pid), restarts_(restarts), own_child_(is_own_child(pid)) {
  release_late();
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) {
    sigaddset(&blocked, signal);
  }
  ::sigprocmask(SIG_BLOCK, &blocked, &mask_);
  // Raise the priority, where allowed, while threads are stopped.
  priority_ = ::getpriority(PRIO_PROCESS, 0);
  ::setpriority(PRIO_PROCESS, 0, -20);
}

Tasks::~Tasks() {
  std::vector<pid_t> tids;
  for (const auto& [tid, state] : tasks_) tids.push_back(tid);
  bool ended = false;
  for (const pid_t tid : tids) ended |= !release(tid);
  if (ended) reap_ended();
  ::setpriority(PRIO_PROCESS, 0, priority_);
  ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

// Detaching needs a stop. Returns false when the thread has ended.
bool Tasks::release(pid_t tid) {
  for (int tries = 0; tries < kGoodbyes; ++tries) {
    State& state = tasks_[tid];
    if (state == State::kStopped) {
      restarts_.renew(tid);
      if (::ptrace(PTRACE_DETACH, tid, nullptr, nullptr) == 0) return true;
      state = State::kRunning;  // killed while it was stopped
    }
    if (state == State::kGone) return false;
    ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
    if (!wait_stopped(tid, Clock::now() + kGoodbye) && task_state(pid_, tid) == 'D') break;
  }
  release_later(pid_, tid);
  return true;
}

bool Tasks::seize(pid_t tid, Seizing& seizing) {
  constexpr int kTries = 4;
  for (int tries = 1;; ++tries) {
    const int error = seizing.seize(tid, PTRACE_O_TRACESYSGOOD);
    if (error == 0) {
      tasks_[tid] = State::kRunning;
      return true;
    }
    if (error == ESRCH || is_ending(task_state(pid_, tid))) return false;
    if (tries == kTries) {
      throw AttachError(error == EPERM ? why_forbidden(pid_)
                                       : fmt::format("cannot be traced: {}", std::strerror(error)));
    }
    // The kernel refuses to trace an ending thread a moment before its state shows the end.
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Waits for ended threads. An ended thread stays a zombie, and holds up its process, until its
// tracer has waited for it. The first thread can be waited for only after all others, and only then
// does an exec of the process go on. Returns false when no thread has ended.
bool Tasks::reap_ended() {
  bool any = false;
  for (auto& [tid, state] : tasks_) {
    // This program's own child is waited for elsewhere: see take_status().
    if (state == State::kGone || (own_child_ && tid == pid_) || !has_ended(tid)) continue;
    ::waitpid(tid, nullptr, __WALL | WNOHANG);
    state = State::kGone;
    any = true;
  }
  return any;
}

// Like waitpid() without waiting. The end of a child of this program stays unwaited: returns -1, as
// for a thread that is gone.
pid_t Tasks::take_status(pid_t tid, int* status) const {
  if (own_child_ && tid == pid_ && has_ended(tid)) return -1;
  return ::waitpid(tid, status, __WALL | WNOHANG);
}

// A signal that is to end memlog waits for the process to be let go, but not for long.
Clock::time_point Tasks::cut_short(Clock::time_point deadline) {
  constexpr auto kGrace = std::chrono::milliseconds(300);  // in total
  if (!interruption_ && interrupted()) interruption_ = Clock::now();
  return interruption_ ? std::min(deadline, *interruption_ + kGrace) : deadline;
}

bool Tasks::wait_for(pid_t tid, Clock::time_point deadline, int* status) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  for (bool first = true;; first = false) {
    const pid_t done = take_status(tid, status);
    if (done == tid) return true;
    if (done < 0) {
      *status = 0;  // gone
      return true;
    }
    // A thread in exec also waits for the others' end.
    const char state = first ? 'R' : task_state(pid_, tid);
    if ((is_ending(state) || state == 'D') && reap_ended()) continue;
    const auto left = cut_short(deadline) - Clock::now();
    if (left <= Clock::duration::zero()) return false;
    // One signal may announce the stops of several threads, so wait only briefly.
    const auto wait = std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1));
    const timespec time = {0, static_cast<long>(wait.count())};
    ::sigtimedwait(&child, nullptr, &time);
  }
}

// Passes on pending signals; the thread then stops before their handlers begin. An interruption can
// get lost when the process is in an exec; so asks again.
bool Tasks::wait_stopped(pid_t tid, Clock::time_point deadline) {
  constexpr auto kAskAgain = std::chrono::milliseconds(100);
  int status = 0;
  for (;;) {
    if (!wait_for(tid, std::min(deadline, Clock::now() + kAskAgain), &status)) {
      if (Clock::now() >= cut_short(deadline)) return false;
      ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
      continue;
    }
    if (!WIFSTOPPED(status)) {
      tasks_[tid] = State::kGone;
      return true;
    }
    if (status >> 16 == PTRACE_EVENT_STOP) {
      tasks_[tid] = State::kStopped;
      restarts_.settle(tid);
      return true;
    }
    take_event(tid, status);
    const bool system_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    ::ptrace(PTRACE_CONT, tid, nullptr, status >> 16 != 0 || system_call ? 0 : WSTOPSIG(status));
  }
}

bool Tasks::interrupt(pid_t tid, Clock::time_point deadline) {
  ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  if (tasks_[tid] == State::kStopped) {
    tasks_[tid] = State::kRunning;
    ::ptrace(PTRACE_CONT, tid, nullptr, nullptr);
  }
  return wait_stopped(tid, deadline) && tasks_[tid] == State::kStopped;
}

bool Tasks::stop(const std::vector<pid_t>& tids, Clock::time_point deadline) {
  for (const pid_t tid : tids) {
    if (tasks_[tid] == State::kRunning) ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  }
  for (const pid_t tid : tids) {
    if (tasks_[tid] != State::kRunning || wait_stopped(tid, deadline)) continue;
    trouble_ = fmt::format("has a thread that does not stop ({}, in state {})", tid,
                           task_state(pid_, tid));
    return false;
  }
  return true;
}

bool Tasks::stop_all(Clock::time_point deadline) {
  const bool all_run = stopped().empty();
  for (bool stable = false; !stable;) {
    stable = true;
    std::optional<Seizing> seizing;
    std::vector<pid_t> running;
    const std::vector<pid_t> tids = all_tasks(pid_);
    if (tids.empty()) throw AttachError("has ended");
    for (const pid_t tid : tids) {
      const auto known = tasks_.find(tid);
      if (known == tasks_.end() || known->second == State::kGone) {
        if (known != tasks_.end() && is_ending(task_state(pid_, tid))) continue;
        if (!seizing) seizing.emplace([this] { reap_ended(); });
        stable &= !seize(tid, *seizing);
      }
      if (tasks_.contains(tid)) running.push_back(tid);
    }
    seizing.reset();
    if (all_run && stopped().empty()) since_ = Clock::now();
    if (!stop(running, deadline)) return false;
  }
  if (stopped().empty()) throw AttachError("is ending");
  return true;
}

void Tasks::resume(const std::vector<pid_t>& tids) {
  for (const pid_t tid : tids) {
    if (tasks_[tid] != State::kStopped) continue;
    // Caution: the thread runs even when job control has stopped its process.
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
  iovec room = {registers, sizeof *registers};
  return ::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &room) == 0;
}

bool Tasks::set_registers(pid_t tid, const user_regs_struct& registers) {
  iovec from = {const_cast<user_regs_struct*>(&registers), sizeof registers};
  return ::ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &from) == 0;
}

uint64_t Tasks::thread_pointer(pid_t tid, const user_regs_struct& registers) {
  uint64_t pointer = util::machine::thread_pointer(registers);
  iovec room = {&pointer, sizeof pointer};
  if (util::machine::kThreadPointerSet != 0) {
    ::ptrace(PTRACE_GETREGSET, tid, util::machine::kThreadPointerSet, &room);
  }
  return pointer;
}

bool Tasks::signal_mask(pid_t tid, uint64_t* mask) {
  return ::ptrace(PTRACE_GETSIGMASK, tid, sizeof *mask, mask) == 0;
}

bool Tasks::set_signal_mask(pid_t tid, uint64_t mask) {
  return ::ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask) == 0;
}

void Tasks::hand_over_signals() {
  for (auto& [tid, state] : tasks_) {
    int status = 0;
    if (state != State::kRunning) continue;
    const pid_t done = take_status(tid, &status);
    if (done == 0) continue;
    if (done < 0 || !WIFSTOPPED(status)) {
      state = State::kGone;
    } else {
      take_event(tid, status);
      ::ptrace(PTRACE_CONT, tid, nullptr, status >> 16 != 0 ? 0 : WSTOPSIG(status));
    }
  }
}

void Tasks::take_event(pid_t tid, int status) {
  unsigned long pid = 0;
  if (status >> 16 != PTRACE_EVENT_CLONE) return;
  if (::ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &pid) == 0) cloned_ = static_cast<pid_t>(pid);
}

void Tasks::hold_clones(pid_t tid, bool on) {
  if (on) cloned_ = 0;
  ::ptrace(PTRACE_SETOPTIONS, tid, nullptr, PTRACE_O_TRACESYSGOOD | (on ? PTRACE_O_TRACECLONE : 0));
}

std::vector<uint64_t> Tasks::vector_registers(pid_t tid) {
  std::string content = register_set(tid, util::machine::kVectorSet);
  if (content.empty()) content = register_set(tid, NT_FPREGSET);
  std::vector<uint64_t> words(content.size() / sizeof(uint64_t));
  std::memcpy(words.data(), content.data(), words.size() * sizeof(uint64_t));
  return words;
}

std::string Tasks::register_set(pid_t tid, uint32_t set) {
  constexpr size_t kRoom = 16384;  // bytes; AVX-512 takes 2.7 KB, AMX 8 KB more, SVE 8.7 KB
  std::string content(kRoom, '\0');
  iovec room = {content.data(), content.size()};
  const bool good = ::ptrace(PTRACE_GETREGSET, tid, set, &room) == 0;
  content.resize(good ? room.iov_len : 0);
  return content;
}

bool Tasks::set_vectors(pid_t tid, uint32_t set, const std::string& content) {
  iovec from = {const_cast<char*>(content.data()), content.size()};
  return content.empty() || ::ptrace(PTRACE_SETREGSET, tid, set, &from) == 0;
}

bool Tasks::run_to_system_call(pid_t tid, Clock::time_point deadline) {
  int status = 0;
  int signal = 0;
  tasks_[tid] = State::kRunning;
  for (;;) {
    ::ptrace(PTRACE_SYSCALL, tid, nullptr, signal);
    if (!wait_for(tid, deadline, &status)) throw AttachError("does not resume in time");
    if (!WIFSTOPPED(status)) {
      tasks_[tid] = State::kGone;
      return false;
    }
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      tasks_[tid] = State::kStopped;
      return true;
    }
    signal = status >> 16 != 0 ? 0 : WSTOPSIG(status);
  }
}
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

}  // namespace mtrace::process
