#include "stepped_tool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "exec_arguments.h"

namespace mtrace::test {
namespace {

std::string text_at(pid_t pid, unsigned long address) {
  char text[4096] = "";
  // To the end of the page: what follows may not be mapped.
  const iovec local = {text, sizeof text - 1 - (address & 4095)};
  const iovec remote = {reinterpret_cast<void*>(address), local.iov_len};
  if (process_vm_readv(pid, &local, 1, &remote, 1, 0) <= 0) return {};
  return text;
}

}  // namespace

pid_t start_traced(const Command& command, const std::string& in, const std::string& out,
                   const std::string& err) {
  ExecArguments arguments(command);
  const pid_t pid = fork();
  if (pid == 0) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
    dup2(open(in.c_str(), O_RDONLY), 0);
    dup2(open(out.c_str(), kFlags, 0600), 1);
    dup2(open(err.c_str(), kFlags, 0600), 2);
    if (chdir(command.directory.c_str()) != 0) _exit(126);
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    execve(arguments.argv()[0], arguments.argv(), arguments.envp());
    _exit(127);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) throw std::runtime_error("exec");
  return pid;
}

Result run_stepwise(const Command& command, const std::function<bool(const ToolCall&)>& look) {
  const TemporaryDirectory files;
  write_file(files / "in", command.input);
  const pid_t pid = start_traced(command, files / "in", files / "out", files / "err");
  Result result;
  result.pid = pid;
  int status = 0;
  ptrace(PTRACE_SETOPTIONS, pid, nullptr,
         PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
  ToolCall call = {};
  bool denied = false;
  for (int signal = 0;;) {
    ptrace(PTRACE_SYSCALL, pid, nullptr, signal);
    if (waitpid(pid, &status, __WALL) != pid) throw std::runtime_error("waitpid");
    if (!WIFSTOPPED(status)) break;
    signal = status >> 16 != 0 ? 0 : WSTOPSIG(status);
    if (signal != (SIGTRAP | 0x80)) continue;
    signal = 0;
    user_regs_struct registers;
    ptrace(PTRACE_GETREGS, pid, nullptr, &registers);
    // The first stop is at the end of exec itself.
    __ptrace_syscall_info information = {};
    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof information, &information);
    if (information.op == PTRACE_SYSCALL_INFO_ENTRY) {
      call = {.pid = pid,
              .number = static_cast<long>(registers.orig_rax),
              .made = false,
              .arguments = {registers.rdi, registers.rsi, registers.rdx, registers.r10,
                            registers.r8, registers.r9},
              .result = 0,
              .path = registers.orig_rax == SYS_openat ? text_at(pid, registers.rsi) : ""};
      denied = !look(call);
      if (!denied) continue;
      registers.orig_rax = ~0ul;
    } else {
      if (denied) registers.rax = static_cast<unsigned long>(-EPERM);
      call.made = true;
      call.result = static_cast<long>(registers.rax);
      look(call);
      if (!denied) continue;
    }
    ptrace(PTRACE_SETREGS, pid, nullptr, &registers);
  }
  result.status = status;
  result.out = read_file(files / "out");
  result.err = read_file(files / "err");
  return result;
}

Tracer::Tracer(pid_t pid) {
  int ready[2];
  if (::pipe(ready) != 0) throw std::runtime_error("no pipe");
  child_ = ::fork();
  if (child_ == 0) {
    const char good = ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 'y' : 'n';
    if (::write(ready[1], &good, 1) != 1 || good == 'n') ::_exit(1);
    // The program's input must come to its end when the test closes it.
    ::close_range(3, ~0u, 0);
    for (int status = 0; ::waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status);) {
      ::ptrace(PTRACE_CONT, pid, nullptr, status >> 16 != 0 ? 0 : WSTOPSIG(status));
    }
    ::_exit(0);
  }
  ::close(ready[1]);
  char good = 'n';
  const bool is_read = ::read(ready[0], &good, 1) == 1;
  ::close(ready[0]);
  if (!is_read || good != 'y') throw std::runtime_error("cannot trace " + std::to_string(pid));
}

Tracer::~Tracer() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

}  // namespace mtrace::test
