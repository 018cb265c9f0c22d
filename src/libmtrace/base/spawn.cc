#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstring>

#include "base/atomic.h"
#include "base/file.h"
#include "base/process.h"
#include "base/syscall.h"
#include "base/writer.h"

namespace mtrace::base {

namespace {

uint32_t g_helpers[5];  // their ids; 0: none, or reaped

uint32_t& id_of(Helper helper) { return g_helpers[static_cast<unsigned>(helper)]; }

// clone(2) with a stack for the child, which calls function(argument) and exits with its result.
// *pid gets the child's id before the child runs; with CLONE_CHILD_CLEARTID the kernel sets it to
// 0, and wakes waiters, when the child has left the memory.
long clone_call_as_helper(unsigned long flags, void* stack_top, int (*function)(void*),
                          void* argument, uint32_t* pid) {
  flags |= CLONE_PARENT_SETTID | CLONE_UNTRACED;
  auto** stack = static_cast<void**>(stack_top) - 2;
  stack[0] = reinterpret_cast<void*>(function);
  stack[1] = argument;
  return machine::clone_onto(stack, flags, pid);
}

long clone_call(unsigned long flags, void* stack_top, int (*function)(void*), void* argument,
                uint32_t* pid) {
  if (!may_call(SYS_clone)) return -EPERM;
  return clone_call_as_helper(flags, stack_top, function, argument, pid);
}

constexpr uint64_t kAddressSpace = uint64_t{8} << 30;  // limit of a program, in bytes
constexpr int64_t kLastFile = 0xffffffff;
constexpr uint32_t kSignalled = 1u << 31;     // in a program's pid: a thread sends it a signal
constexpr unsigned kMostSignalled = 100'000;  // looks at the pid until that thread counts as gone

// The two ways to make a system call. Each is given to what threads and helpers do alike.
constexpr auto kAsThread = [](auto... words) { return call(words...); };
constexpr auto kAsHelper = [](auto... words) { return call_as_helper(words...); };

// Closes the descriptors from `first` to `last`, if there are any.
template <typename Call>
void close_files(Call call, int64_t first, int64_t last) {
  if (first > last || !failed(call(SYS_close_range, first, last, 0))) return;
  rlimit64 limit = {1024, 1024};
  call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  const auto most = static_cast<int64_t>(limit.rlim_cur < 65536 ? limit.rlim_cur : 65536);
  for (int64_t fd = first; fd <= last && fd < most; ++fd) call(SYS_close, fd);
}

template <typename Call>
void close_files_except(Call call, int a, int b) {
  const int64_t low = a < b ? a : b;
  const int64_t high = a < b ? b : a;
  close_files(call, 0, low - 1);
  close_files(call, low + 1, high - 1);
  close_files(call, high + 1, kLastFile);
}

template <typename Call>
bool leave_files_except(Call call, int a, int b) {
  const int64_t high = a > b ? a : b;
  const bool left = !failed(call(SYS_close_range, high + 1, kLastFile, CLOSE_RANGE_UNSHARE)) ||
                    !failed(call(SYS_unshare, CLONE_FILES));
  if (left) close_files_except(call, a, b);
  return left;
}

int execute(void* argument) {
  const auto& program = *static_cast<const Program*>(argument);
  call_as_helper(SYS_setsid);
  call_as_helper(SYS_setpriority, PRIO_PROCESS, 0, program.niceness);
  const long adjust = call_as_helper(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0);
  if (!failed(adjust)) {
    call_as_helper(SYS_write, adjust, "1000", 4);
    call_as_helper(SYS_close, adjust);
  }
  const rlimit64 memory = {kAddressSpace, kAddressSpace};
  call_as_helper(SYS_prlimit64, 0, RLIMIT_AS, &memory, nullptr);
  const rlimit64 cpu = {program.cpu_seconds, program.cpu_seconds};
  call_as_helper(SYS_prlimit64, 0, RLIMIT_CPU, &cpu, nullptr);
  const rlimit64 core = {0, 0};
  call_as_helper(SYS_prlimit64, 0, RLIMIT_CORE, &core, nullptr);
  close_files_except(kAsHelper, program.input, program.output);
  call_as_helper(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
  call_as_helper(SYS_dup, 0);
  call_as_helper(SYS_dup, 0);
  if (program.input >= 0) call_as_helper(SYS_dup3, program.input, 0, 0);
  if (program.output >= 0) call_as_helper(SYS_dup3, program.output, 1, 0);
  // Closed here rather than by O_CLOEXEC: a descriptor may have been passed on without the flag.
  if (program.input >= 0) call_as_helper(SYS_close, program.input);
  if (program.output >= 0) call_as_helper(SYS_close, program.output);
  // The kernel's own layout of a signal action; ignored before it is unblocked, so that
  // killall by name never ends the resolver.
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    uint64_t mask;
  } ignore = {reinterpret_cast<void*>(SIG_IGN), 0, nullptr, 0};
  // SIGTERM ends the child (ask_to_end()): the host's handler must not run in its memory, and what
  // the host ignores stays ignored across exec.
  auto end = ignore;
  end.handler = reinterpret_cast<void*>(SIG_DFL);
  call_as_helper(SYS_rt_sigaction, SIGTERM, &end, nullptr, sizeof end.mask);
  if (program.ignored_signal != 0) {
    call_as_helper(SYS_rt_sigaction, program.ignored_signal, &ignore, nullptr, sizeof ignore.mask);
  }
  // A write beyond the host's RLIMIT_FSIZE then fails, and the tool tidies up.
  call_as_helper(SYS_rt_sigaction, SIGXFSZ, &ignore, nullptr, sizeof ignore.mask);
  const uint64_t none = 0;
  call_as_helper(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
  call_as_helper(SYS_execve, program.path, program.argv, program.envp);
  return 127;
}

// Whether the program has a pid namespace for its children (unshare(2)): the first process started
// there is the namespace's init, and when that ends, the program can start nothing more.
bool is_for_other_namespace() {
  char own[64];
  char children[64];  // empty before the first
  read_link("/proc/thread-self/ns/pid", own, sizeof own);
  read_link("/proc/thread-self/ns/pid_for_children", children, sizeof children);
  return strcmp(own, children) != 0;
}

}  // namespace

long start_sharing(Helper helper, void* stack_top, int (*function)(void*), void* argument) {
  if (is_for_other_namespace()) return -EPERM;
  return clone_call(CLONE_VM | CLONE_FILES, stack_top, function, argument, &id_of(helper));
}

long start_copy(Helper helper, void* stack_top, int (*function)(void*), void* argument) {
  if (is_for_other_namespace()) return -EPERM;
  return clone_call(CLONE_VFORK | CLONE_FILES, stack_top, function, argument, &id_of(helper));
}

long copy_process(Helper helper) {
  if (is_for_other_namespace()) return -EPERM;
  const long pid = call(SYS_clone, CLONE_FILES | CLONE_FS | CLONE_PARENT_SETTID, nullptr,
                        &id_of(helper), nullptr, nullptr);
  // The tracer stops the copy before it runs. Without a tracer the copy exits.
  while (pid == 0) call(SYS_exit_group, 0);
  return pid;
}

long run_program(const Program& program, uint32_t* pid, void* stack_top) {
  // *pid is set before the program runs, so that the program can be ended at any time.
  const long child = clone_call_as_helper(CLONE_VM | CLONE_VFORK | SIGCHLD, stack_top, execute,
                                          const_cast<Program*>(&program), pid);
  if (failed(child)) return child;
  siginfo_t ended;
  while (call_as_helper(SYS_waitid, P_PID, child, &ended, WEXITED | WNOWAIT | __WALL, nullptr) ==
         -EINTR) {
  }
  // Its id is free for another process only once it is reaped, and then nobody signals it. A thread
  // that died with its host while it did so never gives the word back.
  uint32_t id = static_cast<uint32_t>(child);
  for (unsigned i = 0; i < kMostSignalled && !compare_exchange(*pid, id, 0u); ++i) {
    id = static_cast<uint32_t>(child);
    call_as_helper(SYS_sched_yield);
  }
  int status = 0;
  long result;
  do {
    result = call_as_helper(SYS_wait4, child, &status, __WALL, nullptr);
  } while (result == -EINTR);
  __atomic_store_n(pid, 0u, __ATOMIC_RELEASE);
  return failed(result) ? result : status;
}

void signal_program(uint32_t& pid, int signal) {
  uint32_t id = load_acquire(pid);
  if (id == 0 || (id & kSignalled) != 0 || !compare_exchange(pid, id, id | kSignalled)) return;
  call(SYS_kill, id, signal);
  store_release(pid, id);
}

bool leave_files_except(int a, int b) { return leave_files_except(kAsHelper, a, b); }

namespace {

constexpr size_t kStack = 64 * 1024;
constexpr unsigned kMostFiles = 3;
constexpr uint64_t kLongestEnd = 100'000'000u;  // nanoseconds to wait for a thread's end

[[gnu::visibility("hidden")]] thread_local constinit bool t_own_files = false;

struct Work {
  void (*function)(void*);
  void* argument;
  int kept;
  bool shares;  // begins with the shared descriptors
  bool done;
};

int work_with_own_files(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  if (work.shares && !leave_files_except(kAsThread, work.kept, -1)) return 1;
  work.function(work.argument);
  work.done = true;
  return 0;
}

// Does the work in a thread with the caller's thread-local storage and waits for its end: a program
// that has ended its threads may then do what only a single thread may (unshare(2)).
bool work_in_thread(void* stack_top, Work& work) {
  uint32_t alive = 0;
  const unsigned long files = work.shares ? CLONE_FILES : 0;
  const long tid =
      clone_call(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_CHILD_CLEARTID | files, stack_top,
                 work_with_own_files, &work, &alive);
  if (failed(tid)) return false;
  // Not by CLONE_VFORK, in which a debugger could not stop this thread.
  for (uint32_t seen; (seen = load_acquire(alive)) != 0;) wait_on(alive, seen, kLongestEnd);
  const uint64_t end = monotonic_time() + kLongestEnd;
  while (call(SYS_tgkill, process_id(), tid, 0) == 0 && monotonic_time() < end) yield();
  return work.done;
}

// On a stack of its own: a SIGSYS handler may run on the waiting thread's stack.
bool work_on_fresh_stack(Work& work) {
  const long memory = call(SYS_mmap, nullptr, kStack, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (failed(memory)) return false;
  const bool done = work_in_thread(reinterpret_cast<void*>(memory + kStack), work);
  call(SYS_munmap, memory, kStack);
  return done;
}

// Whether this process may open as many files as a report has open at a time.
bool has_files_left() {
  long fds[kMostFiles];
  unsigned count = 0;
  long fd = 0;
  while (count < kMostFiles && !failed(fd = open_to_read("/"))) fds[count++] = fd;
  while (count > 0) call(SYS_close, fds[--count]);
  return fd != -EMFILE;
}

bool work_elsewhere(void* stack_top, Work& work) {
  if (t_own_files || on_valgrind() || (single_threaded() && has_files_left())) return false;
  const uint64_t mask = block_signals();
  t_own_files = true;
  const auto work_once = [&] {
    return stack_top != nullptr ? work_in_thread(stack_top, work) : work_on_fresh_stack(work);
  };
  bool done = work_once();
  work.shares = false;  // the thread could not leave the table: it gets a copy
  done = done || work_once();
  t_own_files = false;
  restore_signals(mask);
  return done;
}

}  // namespace

void with_own_files(void (*function)(void*), void* argument, int kept, void* stack_top) {
  Work work = {function, argument, kept < 0 ? -1 : kept, true, false};
  if (work_elsewhere(stack_top, work)) return;
  // valgrind warns of a stack pointer that moves far, and drd ends when a stack is registered.
  if (stack_top == nullptr || on_valgrind()) return function(argument);
  machine::call_onto(stack_top, function, argument);
}

bool has_own_files() { return t_own_files; }

bool has_helper(Helper helper) { return load_acquire(id_of(helper)) != 0; }

void collect(Helper helper, bool wait) {
  const uint32_t pid = load_acquire(id_of(helper));
  if (pid != 0) collect_process(pid, wait);
}

void collect_process(uint32_t pid, bool wait) {
  long result;
  do {
    result = call(SYS_wait4, pid, nullptr, __WCLONE | (wait ? 0 : WNOHANG), nullptr);
  } while (result == -EINTR);
  if (result == 0 || result == -EPERM) return;
  for (uint32_t& id : g_helpers) {
    uint32_t gone = pid;
    compare_exchange(id, gone, 0u);
  }
}

void forget(Helper helper) { store(id_of(helper), 0u); }

bool has_helpers() {
  bool any = false;
  for (const uint32_t& id : g_helpers) {
    const uint32_t pid = load_acquire(id);
    if (pid != 0) collect_process(pid, false);
    any |= load_acquire(id) != 0;
  }
  return any;
}

bool is_helper(uint32_t pid) {
  for (const uint32_t& id : g_helpers) {
    if (pid != 0 && load_acquire(id) == pid) return true;
  }
  return false;
}

bool collect_found(uint32_t found) {
  if (!is_helper(found)) return false;
  collect_process(found, true);  // the wait may have left it (WNOWAIT)
  return true;
}

namespace {

constexpr char kTasks[] = "/proc/self/task/";

bool finds(uint32_t pid, int options) {
  siginfo_t unused = {};
  return !failed(call(SYS_waitid, P_PID, pid, &unused,
                      WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT | options, nullptr));
}

// A child that another thread reaps meanwhile is found by neither wait.
bool is_clone_child(uint32_t pid) {
  return !is_helper(pid) && !finds(pid, 0) && finds(pid, __WALL);
}

bool has_clone_child(const char* thread) {
  char text[1024];
  Writer(text, sizeof text).text(kTasks).text(thread).text("/children").finish();
  const long fd = open_to_read(text);
  if (failed(fd)) return false;
  uint32_t pid = 0;  // each is followed by a space
  bool found = false;
  for (long got; !found && (got = call(SYS_read, fd, text, sizeof text)) > 0;) {
    for (long i = 0; i < got && !found; ++i) {
      const unsigned digit = static_cast<unsigned char>(text[i]) - '0';
      found = digit > 9 && pid != 0 && is_clone_child(pid);
      pid = digit > 9 ? 0 : pid * 10 + digit;
    }
  }
  close_file(static_cast<int>(fd));
  return found;
}

// Whether /proc is of this pid namespace: shows this process under its own pid.
bool is_shown() {
  char text[16];
  char own[16];
  Writer(own, sizeof own).number(process_id()).finish();
  return read_link("/proc/self", text, sizeof text) != 0 && __builtin_strcmp(text, own) == 0;
}

struct Entry {  // linux_dirent64
  uint64_t number;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[];
};

Answer look_for_clone_children() {
  const long fd = is_shown() ? open_to_read(kTasks) : -1;
  if (failed(fd)) return Answer::kNotKnown;
  alignas(Entry) char entries[1024];
  bool found = false;
  for (long got; !found && (got = call(SYS_getdents64, fd, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < got && !found;) {
      const auto& entry = *reinterpret_cast<const Entry*>(entries + at);
      found = entry.name[0] != '.' && has_clone_child(entry.name);
      at += entry.size;
    }
  }
  close_file(static_cast<int>(fd));
  return found ? Answer::kYes : Answer::kNo;
}

}  // namespace

Answer has_clone_children() {
  Answer answer = Answer::kNotKnown;
  with_own_files([&] { answer = look_for_clone_children(); });
  return answer;
}

}  // namespace mtrace::base
