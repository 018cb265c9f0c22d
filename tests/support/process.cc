#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "exec_arguments.h"

namespace mtrace::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

// Appends what can be read now. False: end of file.
bool drain(int* descriptor, std::string* text) {
  char buffer[65536];
  const ssize_t size = ::read(*descriptor, buffer, sizeof(buffer));
  if (size > 0) {
    text->append(buffer, static_cast<size_t>(size));
    return true;
  }
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  ::close(*descriptor);
  *descriptor = -1;
  return false;
}

}  // namespace

bool Result::exited(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }

std::string Result::how() const {
  if (WIFEXITED(status)) return "exit " + std::to_string(WEXITSTATUS(status));
  return "signal " + std::to_string(WTERMSIG(status));
}

Process::Process(const Command& command) {
  int in[2];
  int out[2] = {-1, -1};
  int err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) fail("pipe");
  if (command.output_file.empty()) {
    if (pipe2(out, O_CLOEXEC) != 0) fail("pipe");
  } else {
    out[1] = open(command.output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out[1] < 0) fail(command.output_file);
  }
  ExecArguments arguments(command);

  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    setpgid(0, 0);
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    if (command.directory.empty() || chdir(command.directory.c_str()) == 0) {
      if (command.before_exec) command.before_exec();
      execve(arguments.argv()[0], arguments.argv(), arguments.envp());
    }
    dprintf(2, "cannot run %s: %s\n", arguments.argv()[0], std::strerror(errno));
    _exit(127);
  }
  setpgid(pid, pid);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  in_ = in[1];
  out_ = out[0];
  err_ = err[0];
  for (const int descriptor : {out_, err_}) {
    if (descriptor >= 0) fcntl(descriptor, F_SETFL, O_NONBLOCK);
  }
  result_.pid = pid;
}

Process::Process(const Command& command, const std::string& line) : Process(command) {
  read_until(line);
}

std::vector<std::string> Process::say(const std::string& text, const std::string& answer) {
  write(text);
  return read_until(answer);
}

Process::~Process() {
  for (const int descriptor : {in_, out_, err_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
  if (!waited_) {
    kill(-result_.pid, SIGKILL);
    kill(result_.pid, SIGKILL);
    waitpid(result_.pid, nullptr, 0);
  }
}

void Process::write(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    pump(0);  // so that a program that echoes cannot block both sides
    const ssize_t size = ::write(in_, text.data() + done, text.size() - done);
    if (size < 0 && errno != EINTR) fail("write to the program");
    if (size > 0) done += static_cast<size_t>(size);
  }
}

void Process::close_input() {
  if (in_ >= 0) ::close(in_);
  in_ = -1;
}

bool Process::pump(int timeout_ms) {
  pollfd polls[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  if (poll(polls, 2, timeout_ms) <= 0) return true;
  if (polls[0].revents != 0) drain(&out_, &result_.out);
  if (polls[1].revents != 0) drain(&err_, &result_.err);
  return true;
}

std::optional<std::string> Process::read_line() {
  const auto deadline = Clock::now() + kPatience;
  while (true) {
    const size_t end = result_.out.find('\n', consumed_);
    if (end != std::string::npos) {
      std::string line = result_.out.substr(consumed_, end - consumed_);
      consumed_ = end + 1;
      return line;
    }
    if (out_ < 0) return std::nullopt;
    if (Clock::now() > deadline) {
      throw std::runtime_error("no line from the program; stderr: " + result_.err);
    }
    pump(1000);
  }
}

std::vector<std::string> Process::read_until(const std::string& line) {
  std::vector<std::string> lines;
  while (true) {
    std::optional<std::string> next = read_line();
    if (!next) {
      throw std::runtime_error("the program ended before '" + line + "'; stderr: " + result_.err);
    }
    if (*next == line) return lines;
    lines.push_back(std::move(*next));
  }
}

void Process::send(int signal) const {
  if (kill(result_.pid, signal) != 0) fail("kill");
}

Result Process::wait() {
  close_input();
  // Not libc's wrapper: its header lacks extern "C" in glibc 2.36.
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, result_.pid, 0));
  if (pidfd < 0) fail("pidfd_open");
  const auto deadline = Clock::now() + kPatience;
  bool ended = false;
  while (!ended) {
    pollfd polls[3] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}, {pidfd, POLLIN, 0}};
    poll(polls, 3, 1000);
    if (polls[0].revents != 0) drain(&out_, &result_.out);
    if (polls[1].revents != 0) drain(&err_, &result_.err);
    ended = polls[2].revents != 0;
    if (!ended && Clock::now() > deadline) {
      ::close(pidfd);
      throw std::runtime_error("the program does not end; stdout: " + result_.out +
                               " stderr: " + result_.err);
    }
  }
  ::close(pidfd);
  // What it wrote before its end is in the pipes; descendants may keep them open for ever.
  for (int* descriptor : {&out_, &err_}) {
    std::string& text = descriptor == &out_ ? result_.out : result_.err;
    while (*descriptor >= 0) {
      pollfd ready = {*descriptor, POLLIN, 0};
      if (poll(&ready, 1, 0) <= 0) break;
      drain(descriptor, &text);
    }
  }
  waitpid(result_.pid, &result_.status, 0);
  waited_ = true;
  return result_;
}

Result run(const Command& command) {
  Process process(command);
  if (!command.input.empty()) process.write(command.input);
  return process.wait();
}

std::map<std::string, std::string> plain_environment(const std::string& home) {
  return {{"PATH", "/usr/bin:/bin:/usr/sbin:/sbin"},
          {"HOME", home},
          {"TMPDIR", home},
          {"MEMLOG_BYTES", "1"},
          {"LC_ALL", "C.UTF-8"}};
}

void wait_until(const std::string& what, const std::function<bool()>& condition) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) throw std::runtime_error("waited in vain for " + what);
    const timespec pause = {0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

char process_state(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '\0' : stat[name_end + 2];
}

bool is_blocked(pid_t pid, long system_call) {
  // /proc/PID/syscall needs ptrace rights, which a parent has over its child.
  return process_state(pid) == 'S' && read_file("/proc/" + std::to_string(pid) + "/syscall")
                                          .starts_with(std::to_string(system_call) + " ");
}

void wait_until_blocked(pid_t pid, long system_call) {
  wait_until("system call " + std::to_string(system_call),
             [&] { return is_blocked(pid, system_call); });
}

}  // namespace mtrace::test
