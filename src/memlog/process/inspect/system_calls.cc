#include "process/inspect/system_calls.h"

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "process/inspect/process.h"

namespace mtrace::process {

// A kernel without "Seccomp_filters" still tells by "Seccomp" whether there is one.
uint32_t system_call_filters(pid_t pid) {
  uint32_t most = 0;
  for (const pid_t tid : ids_in(proc_path(pid, "task"))) {
    const std::string status = read_proc(task_path(pid, tid, "status")).value_or("");
    const auto number = [&](const char* key) {
      return static_cast<uint32_t>(std::strtoul(status_value(status, key).c_str(), nullptr, 10));
    };
    most = std::max({most, std::min(number("Seccomp"), 1u), number("Seccomp_filters")});
  }
  return most;
}
namespace {

constexpr int kStrict = 1;
constexpr int kFilters = 2;

// Returns whether a stopped thread has filters. To root the kernel answers at once; reading /proc
// takes twenty times as long.
bool has_filters(pid_t pid, pid_t tid) {
  if (::ptrace(PTRACE_SECCOMP_GET_FILTER, tid, 0, nullptr) >= 0) return true;
  return errno != EINVAL && seccomp_mode(pid, tid) == kFilters;
}

// Returns the filter that was added last but `number`; empty: there is none.
std::vector<sock_filter> filter_of(pid_t tid, uint64_t number) {
  std::vector<sock_filter> filter(BPF_MAXINSNS);
  const long length = ::ptrace(PTRACE_SECCOMP_GET_FILTER, tid, number, filter.data());
  if (length < 0 && errno != ENOENT) {
    throw AttachError(
        "has a system call filter (seccomp), which could kill it: only root can read the filter, "
        "so run memlog as root");
  }
  filter.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return filter;
}

// Calls check(filter) once for each filter of stopped threads.
template <typename Check>
void each_filter(pid_t pid, const std::vector<pid_t>& stopped, const Check& check) {
  std::vector<sock_filter> checked;  // most threads have the same filters
  for (const pid_t tid : stopped) {
    const bool filtered = has_filters(pid, tid);
    for (uint64_t number = 0; filtered; ++number) {
      std::vector<sock_filter> filter = filter_of(tid, number);
      if (filter.empty()) break;
      const auto same = [](const sock_filter& a, const sock_filter& b) {
        return a.code == b.code && a.jt == b.jt && a.jf == b.jf && a.k == b.k;
      };
      if (std::equal(filter.begin(), filter.end(), checked.begin(), checked.end(), same)) continue;
      check(filter);
      checked = std::move(filter);
    }
  }
}

// What PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG tells since Linux 6.4.
struct UserDispatch {
  uint64_t mode;  // 0: off
  uint64_t selector;
  uint64_t offset;
  uint64_t length;
};

void refuse_user_dispatch(const std::vector<pid_t>& stopped) {
  constexpr auto kGet = static_cast<__ptrace_request>(0x4211);
  for (const pid_t tid : stopped) {
    UserDispatch found = {};
    if (::ptrace(kGet, tid, sizeof found, &found) != 0 || found.mode == 0) continue;
    throw AttachError(fmt::format(
        "hands over the system calls of thread {} to a handler of its own (syscall user dispatch), "
        "which would take those of memlog for its own",
        tid));
  }
}

void check_filter(const std::vector<sock_filter>& filter) {
  for (const FilteredCall& call : filtered_calls()) {
    const Verdict verdict = judge(filter, call);
    if (verdict == Verdict::kAllowed || (verdict == Verdict::kFails && !call.needed)) continue;
    throw AttachError(fmt::format("has a system call filter (seccomp) that {} {}",
                                  verdict == Verdict::kEnds ? "could kill it at" : "denies",
                                  call.name));
  }
}

}  // namespace

int seccomp_mode(pid_t pid, pid_t tid) {
  return std::atoi(task_status(pid, tid, "Seccomp").c_str());
}

Verdict judge(const std::vector<sock_filter>& filter, const FilteredCall& call) {
  SystemCall known = {call.number, 0, {}};
  if (call.argument >= 0) {
    known.known = 1u << call.argument;
    known.arguments[call.argument] = call.value;
  }
  return judge(filter.data(), filter.size(), known);
}

void refuse_strict_mode(pid_t pid) {
  for (const pid_t tid : all_tasks(pid)) {
    if (seccomp_mode(pid, tid) != kStrict) continue;
    throw AttachError("is in seccomp strict mode: a system call by memlog would kill it");
  }
}

void check_filters(pid_t pid, const std::vector<pid_t>& stopped) {
  refuse_user_dispatch(stopped);
  each_filter(pid, stopped, check_filter);
}

bool may_restart(pid_t pid, pid_t tid) {
  constexpr FilteredCall kRestart = {"restart_syscall", SYS_restart_syscall, true};
  bool may = true;
  try {
    each_filter(pid, {tid}, [&](const std::vector<sock_filter>& filter) {
      may &= judge(filter, kRestart) == Verdict::kAllowed;
    });
  } catch (const AttachError&) {
    return false;
  }
  return may;
}

void check_signal_return(pid_t pid, const std::vector<pid_t>& stopped) {
  constexpr FilteredCall kReturn = {"rt_sigreturn", SYS_rt_sigreturn, true};
  try {
    each_filter(pid, stopped, [&](const std::vector<sock_filter>& filter) {
      if (judge(filter, kReturn) == Verdict::kAllowed) return;
      throw SignalKills(
          "has a system call filter (seccomp) that kills it when a signal handler returns");
    });
  } catch (const SignalKills&) {
    throw;
  } catch (const AttachError&) {
    return;  // only root may read filters; the library knows those that it has seen
  }
}

#define MTRACE_CALL(name) #name, SYS_##name
#define MTRACE_NEEDED(name) \
  { MTRACE_CALL(name), true }
#define MTRACE_MAY(name) \
  { MTRACE_CALL(name), false }

const std::vector<FilteredCall>& filtered_calls() {
  constexpr int kProtection = 2;  // index of the argument, for mmap and mprotect
  static const std::vector<FilteredCall> calls = {
      // For the borrowed thread's code, dlopen, and recording a block.
      {MTRACE_CALL(mmap), true, kProtection, PROT_READ},
      {MTRACE_CALL(mmap), true, kProtection, PROT_READ | PROT_WRITE},
      {MTRACE_CALL(mmap), true, kProtection, PROT_READ | PROT_EXEC},
      {MTRACE_CALL(mprotect), true, kProtection, PROT_NONE},
      {MTRACE_CALL(mprotect), true, kProtection, PROT_READ},
      {MTRACE_CALL(mprotect), true, kProtection, PROT_READ | PROT_WRITE},
      MTRACE_NEEDED(munmap),
      MTRACE_NEEDED(brk),
      MTRACE_NEEDED(ppoll),
      MTRACE_NEEDED(rt_sigprocmask),
      MTRACE_NEEDED(memfd_create),
      MTRACE_NEEDED(openat),
      MTRACE_NEEDED(read),
      MTRACE_NEEDED(pread64),
      MTRACE_NEEDED(newfstatat),
      MTRACE_NEEDED(fstat),
      MTRACE_NEEDED(close),
      MTRACE_NEEDED(futex),
      MTRACE_NEEDED(getpid),
      MTRACE_NEEDED(gettid),
      MTRACE_NEEDED(clock_gettime),
      MTRACE_NEEDED(rt_sigreturn),
      // For reports, ledgers and names.
      MTRACE_MAY(clock_getres),
      MTRACE_MAY(clone),
      MTRACE_MAY(close_range),
      MTRACE_MAY(dup),
      MTRACE_MAY(dup3),
      MTRACE_MAY(execve),
      MTRACE_MAY(exit),
      MTRACE_MAY(exit_group),
      MTRACE_MAY(faccessat),
      MTRACE_MAY(fallocate),
      MTRACE_MAY(ftruncate),
      MTRACE_MAY(fchmod),
      MTRACE_MAY(fchown),
      MTRACE_MAY(fcntl),
      MTRACE_MAY(getcwd),
      MTRACE_MAY(getdents64),
      MTRACE_MAY(getrandom),
      MTRACE_MAY(kill),
      MTRACE_MAY(linkat),
      MTRACE_MAY(lseek),
      MTRACE_MAY(madvise),
      MTRACE_MAY(membarrier),
      MTRACE_MAY(mincore),
      MTRACE_MAY(mlock2),
      MTRACE_MAY(mlockall),
      MTRACE_MAY(mremap),
      MTRACE_MAY(msync),
      MTRACE_MAY(munlock),
      MTRACE_MAY(prctl),
      MTRACE_MAY(prlimit64),
      MTRACE_MAY(process_vm_readv),
      MTRACE_MAY(pwrite64),
      MTRACE_MAY(readlinkat),
      MTRACE_MAY(renameat2),
      MTRACE_MAY(rt_sigaction),
      MTRACE_MAY(rt_sigpending),
      MTRACE_MAY(rt_sigtimedwait),
      MTRACE_MAY(rt_tgsigqueueinfo),
      MTRACE_MAY(sched_yield),
      MTRACE_MAY(setpriority),
      MTRACE_MAY(setsid),
      MTRACE_MAY(tgkill),
      MTRACE_MAY(tkill),
      MTRACE_MAY(uname),
      MTRACE_MAY(unlinkat),
      MTRACE_MAY(unshare),
      MTRACE_MAY(wait4),
      MTRACE_MAY(waitid),
      MTRACE_MAY(write)};
  return calls;
}

}  // namespace mtrace::process
