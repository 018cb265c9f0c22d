#include "target/held_signal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "target/error.h"
#include "target/restarts.h"
#include "target/seccomp.h"
#include "target/target_memory.h"
#include "target/task_list.h"
#include "target/tasks.h"

namespace mtrace::target {
namespace {

bool blocks(pid_t pid, pid_t tid, int signal) {
  const std::string mask = task_status(pid, tid, "SigBlk");
  return mask.empty() || (std::strtoull(mask.c_str(), nullptr, 16) >> (signal - 1) & 1) != 0;
}

}  // namespace

void send_held(pid_t pid, int signal, const std::function<bool()>& is_same,
               std::chrono::milliseconds timeout) {
  // Without a cave there is no room for restart code, so calls with a time limit end early. The
  // signal itself ends them early, too.
  const TargetMemory memory(pid);
  Restarts restarts(pid, memory, {});
  Tasks tasks(pid, restarts);
  if (!tasks.stop_all(Clock::now() + timeout)) throw AttachError(tasks.trouble());
  if (!is_same()) throw AttachError("has executed another program (exec)");
  check_signal_return(pid, tasks.stopped());
  for (const pid_t tid : tasks.stopped()) {
    if (!blocks(pid, tid, signal) && ::syscall(SYS_tgkill, pid, tid, signal) == 0) return;
  }
  throw AttachError("blocks the signal in every thread");
}

}  // namespace mtrace::target
