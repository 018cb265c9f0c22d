// memlog: runs, names and reads memlogs. Everything is in the commands; see command.h.
#include <unistd.h>

#include "surface/cli/command.h"

// A preloaded libmtrace.so looks for this and does not trace memlog itself.
extern "C" {
extern const char mtrace_host_opt_out;
[[gnu::used]] const char mtrace_host_opt_out = 1;
}

int main(int argc, char** argv) {
  using namespace mtrace::cli;
  const Streams streams = {stdout, stderr, ::isatty(STDOUT_FILENO) == 1};
  int status = run({argv + (argc > 0), argv + argc}, streams);
  // Who closed the pipe has read enough; a full disk is another matter.
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && errno != EPIPE) {
    complain(streams, std::string("cannot write: ") + std::strerror(errno));
    status = kFailed;
  }
  return status;
}
