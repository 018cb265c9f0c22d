// Waits that find every child: with __WALL or __WCLONE also what waits for the resolver or the
// writer of the event log, whose end sends no signal. Tracers wait so, and would take it for a
// process of theirs.
//
// A wait may be where a thread is cancelled: nothing here has a destructor. And it may last: every
// other wait is a jump, because memlog borrows no thread that has a frame of this library.
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "hook/export.h"
#include "hook/lifecycle.h"
#include "hook/next_functions.h"
#include "report/event_writer.h"
#include "report/resolver_process.h"

namespace mtrace::hook {
namespace {

bool finds_all(int options) { return (options & (__WALL | __WCLONE)) != 0; }

bool is_foreign(pid_t found) {
  const auto pid = static_cast<uint32_t>(found);
  return found > 0 && (report::collect_found(pid) || report::collect_found_writer(pid));
}

pid_t absent() {
  errno = ENOSYS;
  return -1;
}

// The caller's words stay as they are until one of its own children is found.
template <typename Call>
pid_t wait_for_own(int* status, rusage* usage, const Call& call) {
  int of_child = 0;
  rusage used = {};
  pid_t found;
  do {
    found = call(&of_child, &used);
  } while (is_foreign(found));
  if (found > 0 && status != nullptr) *status = of_child;
  if (found > 0 && usage != nullptr) *usage = used;
  return found;
}

MTRACE_REALIGN __attribute__((noinline)) pid_t wait_for_every(pid_t pid, int* status, int options,
                                                              rusage* usage) {
  start();
  if (g_next.wait4 == nullptr) return absent();
  return wait_for_own(status, usage, [=](int* of_child, rusage* used) {
    return g_next.wait4(pid, of_child, options, used);
  });
}

MTRACE_REALIGN __attribute__((noinline)) int identify_every(idtype_t type, id_t id,
                                                            siginfo_t* information, int options) {
  start();
  if (g_next.waitid == nullptr) return absent();
  siginfo_t found = {};
  int result;
  do {
    result = g_next.waitid(type, id, &found, options);
  } while (result == 0 && finds_all(options) && is_foreign(found.si_pid));
  if (result == 0 && information != nullptr) *information = found;
  return result;
}

}  // namespace
}  // namespace mtrace::hook

using namespace mtrace::hook;

MTRACE_EXPORT_AS_IT_IS pid_t waitpid(pid_t pid, int* status, int options) {
  if (finds_all(options) || g_next.waitpid == nullptr) {
    return wait_for_every(pid, status, options, nullptr);
  }
  return g_next.waitpid(pid, status, options);
}
MTRACE_EXPORT_AS_IT_IS pid_t wait3(int* status, int options, struct rusage* usage) noexcept {
  if (finds_all(options) || g_next.wait3 == nullptr) {
    return wait_for_every(-1, status, options, usage);
  }
  return g_next.wait3(status, options, usage);
}
MTRACE_EXPORT_AS_IT_IS pid_t wait4(pid_t pid, int* status, int options,
                                   struct rusage* usage) noexcept {
  if (finds_all(options) || g_next.wait4 == nullptr) {
    return wait_for_every(pid, status, options, usage);
  }
  return g_next.wait4(pid, status, options, usage);
}
MTRACE_EXPORT_AS_IT_IS int waitid(idtype_t type, id_t id, siginfo_t* information, int options) {
  if (finds_all(options) || g_next.waitid == nullptr) {
    return identify_every(type, id, information, options);
  }
  return g_next.waitid(type, id, information, options);
}
