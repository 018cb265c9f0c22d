#include "model/symbols/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mtrace::symbols {
namespace {

// The last byte that a child writes. Its exit status alone does not tell: who ignores SIGCHLD, as
// this process may have been started to do, never gets to see one.
constexpr char kComplete = 'E';

void close_all_but(std::array<int, 2> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned begin = STDERR_FILENO + 1;
  for (const int one : kept) {
    if (one < static_cast<int>(begin)) continue;
    const auto end = static_cast<unsigned>(one);
    if (end > begin) ::close_range(begin, end - 1, 0);
    begin = end + 1;
  }
  ::close_range(begin, ~0u, 0);
}

// In the child: it dies with `parent`, leaves no core file and closes all files but `kept` and the
// standard ones. Does not return when the parent has died already.
void confine_child(pid_t parent, unsigned cpu_seconds, std::array<int, 2> kept) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before prctl
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const rlimit cpu = {cpu_seconds, cpu_seconds + 1};
  ::setrlimit(RLIMIT_CPU, &cpu);
  close_all_but(kept);
}

[[noreturn]] void child(int output, const std::function<std::string()>& work, unsigned cpu_seconds,
                        pid_t parent, int descriptor) {
  confine_child(parent, cpu_seconds, {output, descriptor});
  std::string result;
  try {
    result = work();
  } catch (const std::exception&) {
    ::_exit(1);
  }
  result += kComplete;
  for (size_t at = 0; at < result.size();) {
    const ssize_t written = ::write(output, result.data() + at, result.size() - at);
    if (written < 0 && errno != EINTR) ::_exit(1);
    if (written > 0) at += static_cast<size_t>(written);
  }
  ::_exit(0);
}

std::string read_all(int input) {
  std::string content;
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(input, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return content;
    content.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

std::optional<std::string> run_isolated(const std::function<std::string()>& work,
                                        unsigned cpu_seconds, int descriptor) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return work();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    child(ends[1], work, cpu_seconds, parent, descriptor);
  }
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return work();
  }
  std::string result = read_all(ends[0]);
  ::close(ends[0]);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!result.ends_with(kComplete)) return std::nullopt;
  result.pop_back();
  return result;
}

}  // namespace mtrace::symbols
