// Waits for children in every way while it is looked at: fails when it sees one that it has not
// made, or gets a SIGCHLD for it. Allocates and keeps all of it reachable. Ends at the end of its
// input.
#include <poll.h>

#include <map>
#include <string>

#include "truth.h"

namespace {

volatile sig_atomic_t g_signals = 0;
std::map<int, std::string> g_kept;

int fail(const char* what) {
  printf("%s\n", what);
  return 1;
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  struct sigaction action = {};
  action.sa_handler = [](int) { g_signals = g_signals + 1; };
  sigaction(SIGCHLD, &action, nullptr);
  int expected = 0;
  for (int i = 0;; ++i) {
    g_kept[i % 1000] = std::string(static_cast<size_t>(i % 300), 'x');
    if (wait(nullptr) != -1 || errno != ECHILD) return fail("wait() found a child");
    if (waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) return fail("so did waitpid()");
    siginfo_t info = {};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != -1) return fail("so did waitid()");
    if (i % 64 == 0) {
      const pid_t child = fork();
      if (child == 0) _exit(7);
      int status = 0;
      pid_t found;
      do {
        found = wait(&status);
      } while (found < 0 && errno == EINTR);
      if (found != child || WEXITSTATUS(status) != 7) return fail("not its own child");
      ++expected;
    }
    if (g_signals > expected) return fail("a SIGCHLD too many");
    if (i == 1000) puts("ready");
    pollfd input = {0, POLLIN, 0};
    if (poll(&input, 1, 0) > 0) {
      char byte;
      if (read(0, &byte, 1) <= 0) return 0;
    }
  }
}
