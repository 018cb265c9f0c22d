// Waits that find every child: with __WALL or __WCLONE also what waits for the resolver, whose end
// sends no signal. Tracers wait so, and would take it for a process of theirs.
//
// A wait may be where a thread is cancelled: nothing here has a destructor.
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "hook/export.h"
#include "hook/lifecycle.h"
#include "hook/next_functions.h"
#include "report/resolver_process.h"

namespace mtrace::hook {
namespace {

bool finds_all(int options) { return (options & (__WALL | __WCLONE)) != 0; }

bool is_foreign(pid_t found) {
  return found > 0 && report::collect_found(static_cast<uint32_t>(found));
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

}  // namespace
}  // namespace mtrace::hook

using namespace mtrace::hook;

MTRACE_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  start();
  if (g_next.waitpid == nullptr) return absent();
  if (!finds_all(options)) return g_next.waitpid(pid, status, options);
  return wait_for_own(status, nullptr, [=](int* of_child, rusage*) {
    return g_next.waitpid(pid, of_child, options);
  });
}
MTRACE_EXPORT pid_t wait3(int* status, int options, struct rusage* usage) noexcept {
  start();
  if (g_next.wait3 == nullptr) return absent();
  if (!finds_all(options)) return g_next.wait3(status, options, usage);
  return wait_for_own(status, usage, [=](int* of_child, rusage* used) {
    return g_next.wait3(of_child, options, used);
  });
}
MTRACE_EXPORT pid_t wait4(pid_t pid, int* status, int options, struct rusage* usage) noexcept {
  start();
  if (g_next.wait4 == nullptr) return absent();
  if (!finds_all(options)) return g_next.wait4(pid, status, options, usage);
  return wait_for_own(status, usage, [=](int* of_child, rusage* used) {
    return g_next.wait4(pid, of_child, options, used);
  });
}
MTRACE_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* information, int options) {
  start();
  if (g_next.waitid == nullptr) return absent();
  if (!finds_all(options)) return g_next.waitid(type, id, information, options);
  siginfo_t found = {};
  int result;
  do {
    result = g_next.waitid(type, id, &found, options);
  } while (result == 0 && is_foreign(found.si_pid));
  if (result == 0 && information != nullptr) *information = found;
  return result;
}
