// Hides the library's helpers (base::Helper) from waits that find every child (__WALL, __WCLONE:
// tracers): the program would take a helper for its own child, or wait for it in place of getting
// ECHILD. Also hooks clone(), which makes children that only such a wait finds.
//
// A wait is a cancellation point: nothing here has a destructor. And it may last: every other wait
// is a jump, because memlog borrows no thread that has a frame of this library.
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/atomic.h"
#include "base/machine.h"
#include "base/spawn.h"
#include "life/lifecycle.h"
#include "next/next_functions.h"

namespace mtrace::entry {
namespace {

bool finds_all(int options) { return (options & (__WALL | __WCLONE)) != 0; }

pid_t fails(int error) {
  errno = error;
  return -1;
}

// How to wait while there are helpers, so that the wait finds none of them.
struct Search {
  int options;
  bool never;         // the wait asks for a helper only
  bool now_or_never;  // a child that is not found at once is not there
};

// __WALL finds more than a wait without it only if there are clone children. In a wait without it
// the kernel detects that no child is left, whatever other threads do meanwhile.
Search search(int options, uint32_t one) {
  if (one != 0) return {options, base::is_helper(one), false};
  if (load(base::g_clones) && base::has_clone_children() != base::Answer::kNo)
    return {options, false, false};
  if ((options & __WALL) != 0)
    return {options & ~static_cast<int>(__WALL | __WCLONE), false, false};
  return {options | WNOHANG, false, true};  // finds children that are traced
}

// True: there are clone children, which was not known before.
bool learns_of_clones() {
  if (load(base::g_clones) || base::has_clone_children() != base::Answer::kYes) return false;
  store(base::g_clones, true);
  return true;
}

// Waits by call(options), which returns the child that it found, 0 or -1, until the child is the
// program's. `one`: the only child that `call` waits for, or 0.
template <typename Call>
pid_t wait_for_own(int options, uint32_t one, const Call& call) {
  for (;;) {
    const bool helped = base::has_helpers();
    const Search how = helped ? search(options, one) : Search{options, false, false};
    pid_t found = how.never ? fails(ECHILD) : call(how.options);
    if (found == 0 && how.now_or_never) found = fails(ECHILD);
    // A helper that came during the call may be the one found, or the reason for no ECHILD.
    const bool again = found > 0    ? base::collect_found(static_cast<uint32_t>(found))
                       : found == 0 ? !helped && base::has_helpers()
                                    : helped && one == 0 && errno == ECHILD && learns_of_clones();
    if (!again) return found;
  }
}

// Leaves the caller's words as they are until a child of the program is found.
[[gnu::noinline]] MTRACE_REALIGN pid_t wait_for_every(pid_t pid, int* status, int options,
                                                      rusage* usage) {
  life::start();
  if (next::g_next.wait4 == nullptr) return fails(ENOSYS);
  int of_child = 0;
  rusage used = {};
  const pid_t found = wait_for_own(options, pid > 0 ? static_cast<uint32_t>(pid) : 0, [&](int how) {
    return next::g_next.wait4(pid, &of_child, how, &used);
  });
  if (found > 0 && status != nullptr) *status = of_child;
  if (found > 0 && usage != nullptr) *usage = used;
  return found;
}

[[gnu::noinline]] MTRACE_REALIGN int identify_every(idtype_t type, id_t id, siginfo_t* information,
                                                    int options) {
  life::start();
  if (next::g_next.waitid == nullptr) return fails(ENOSYS);
  siginfo_t of_child = {};
  const auto call = [&](int how) {
    return next::g_next.waitid(type, id, &of_child, how) == 0 ? of_child.si_pid : -1;
  };
  const pid_t found =
      finds_all(options) ? wait_for_own(options, type == P_PID ? id : 0, call) : call(options);
  if (found < 0) return -1;
  if (information != nullptr) *information = of_child;
  return 0;
}

}  // namespace

}  // namespace mtrace::entry

using namespace mtrace;
using namespace mtrace::entry;

MTRACE_EXPORT_AS_IT_IS pid_t waitpid(pid_t pid, int* status, int options) {
  if (finds_all(options) || next::g_next.waitpid == nullptr) {
    return wait_for_every(pid, status, options, nullptr);
  }
  return next::g_next.waitpid(pid, status, options);
}
MTRACE_EXPORT_AS_IT_IS pid_t wait3(int* status, int options, struct rusage* usage) noexcept {
  if (finds_all(options) || next::g_next.wait3 == nullptr) {
    return wait_for_every(-1, status, options, usage);
  }
  return next::g_next.wait3(status, options, usage);
}
MTRACE_EXPORT_AS_IT_IS pid_t wait4(pid_t pid, int* status, int options,
                                   struct rusage* usage) noexcept {
  if (finds_all(options) || next::g_next.wait4 == nullptr) {
    return wait_for_every(pid, status, options, usage);
  }
  return next::g_next.wait4(pid, status, options, usage);
}
MTRACE_EXPORT_AS_IT_IS int waitid(idtype_t type, id_t id, siginfo_t* information, int options) {
  if (finds_all(options) || next::g_next.waitid == nullptr) {
    return identify_every(type, id, information, options);
  }
  return next::g_next.waitid(type, id, information, options);
}
// Under a name of its own: libc's clone is variadic, and could not pass its arguments on by a jump.
MTRACE_EXPORT_AS_IT_IS int mtrace_clone(int (*run)(void*), void* stack, int flags, void* argument,
                                        void* parent_tid, void* tls, void* child_tid) asm("clone");
MTRACE_EXPORT_AS_IT_IS int mtrace_clone(int (*run)(void*), void* stack, int flags, void* argument,
                                        void* parent_tid, void* tls, void* child_tid) {
  base::note_clone(flags);
  if (next::g_next.clone == nullptr) life::start();
  if (next::g_next.clone == nullptr) return fails(ENOSYS);
  return next::g_next.clone(run, stack, flags, argument, parent_tid, tls, child_tid);
}
