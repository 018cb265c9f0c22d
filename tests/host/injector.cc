#include "injector.h"

#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

#include "stepped_tool.h"

namespace mtrace::test {
namespace {

struct Range {
  uint64_t start = 0;
  uint64_t end = 0;
};

// Where the code of the library lies.
Range code_of_library(pid_t pid) {
  for (const std::string& line : lines_of(read_file("/proc/" + std::to_string(pid) + "/maps"))) {
    if (line.find("libmtrace.so") == std::string::npos) continue;
    if (line.find(" r-xp ") == std::string::npos) continue;
    Range range;
    char dash;
    std::istringstream(line) >> std::hex >> range.start >> dash >> range.end;
    return range;
  }
  return {};
}

// Their failure is either impossible or the end: a mask that cannot be put back, an exit.
bool cannot_fail(long number) {
  return number == SYS_rt_sigprocmask || number == SYS_exit_group || number == SYS_exit ||
         number == SYS_munmap || number == SYS_close || number == SYS_getpid ||
         number == SYS_gettid || number == SYS_clock_gettime || number == SYS_prctl;
}

}  // namespace

Injected run_with_fault(const Command& command, const Fault& fault) {
  Injected injected;
  std::filesystem::remove(command.output_file);  // of the run before
  const pid_t pid = start_traced(command, "/dev/null", command.output_file, command.output_file);
  injected.result.pid = pid;
  int status = 0;
  ptrace(PTRACE_SETOPTIONS, pid, nullptr,
         PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
  ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
  Range code;
  std::set<pid_t> inside;   // threads between entry and exit of a call
  std::set<pid_t> failing;  // of those, whose call fails
  for (;;) {
    const pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0) throw std::runtime_error("waitpid");
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread == pid) break;
      continue;
    }
    int deliver = 0;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      user_regs_struct registers;
      if (ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) continue;
      const bool entry = inside.insert(thread).second;
      if (!entry) inside.erase(thread);
      if (code.end == 0 && entry) code = code_of_library(pid);
      const auto number = static_cast<long>(registers.orig_rax);
      const bool ours = registers.rip > code.start && registers.rip <= code.end;
      // The library's threads are not traced, but their calls are its own, too.
      if (entry && ours && number == SYS_clone && (registers.rdi & CLONE_THREAD) != 0) {
        registers.rdi &= ~uint64_t{CLONE_UNTRACED};
        ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
      }
      if (entry && ours && (fault.only >= 0 ? number == fault.only : !cannot_fail(number))) {
        ++injected.calls;
        if (fault.from != 0 &&
            (fault.and_on ? injected.calls >= fault.from : injected.calls == fault.from)) {
          registers.orig_rax = static_cast<uint64_t>(-1);  // a call that the kernel does not know
          ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
          failing.insert(thread);
          ++injected.faults;
        }
      } else if (!entry && failing.erase(thread) != 0) {
        registers.rax = static_cast<uint64_t>(-fault.error);
        ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
      }
    } else if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
      deliver = WSTOPSIG(status);
    }
    ptrace(PTRACE_SYSCALL, thread, nullptr, deliver);
  }
  injected.result.status = status;
  injected.result.out = read_file(command.output_file);
  return injected;
}

}  // namespace mtrace::test
