// What a process does with itself: it becomes another program, or two, or gives up system calls.
#include <alloca.h>
#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>

#include "base/probe.h"
#include "base/process.h"
#include "base/syscall.h"
#include "hook/export.h"
#include "hook/fork.h"
#include "hook/lifecycle.h"
#include "hook/real.h"
#include "hook/reporting.h"

namespace mtrace::hook {
namespace {

// A call that returns only when it fails. A child of vfork, whose memory is its parent's, leaves
// the parent's reports alone.
template <typename Call>
int become(Call call) {
  const Leaving leaving = leave_program();
  const int result = call();
  stay_in_program(leaving);
  return result;
}

int absent() {
  errno = ENOSYS;
  return -1;
}

// The arguments of a call "path, argument, ..., null" as an array in the caller's frame.
#define MTRACE_ARGUMENTS(first, list, argv)                                                \
  va_list list;                                                                            \
  va_start(list, first);                                                                   \
  size_t argv##_count = 1;                                                                 \
  for (const char* a = first; a != nullptr; a = va_arg(list, const char*)) ++argv##_count; \
  va_end(list);                                                                            \
  auto** argv = static_cast<char**>(alloca(argv##_count * sizeof(char*)));                 \
  va_start(list, first);                                                                   \
  argv[0] = const_cast<char*>(first);                                                      \
  for (size_t i = 1; i < argv##_count; ++i) argv[i] = va_arg(list, char*)

}  // namespace
}  // namespace mtrace::hook

using namespace mtrace;
using namespace mtrace::hook;

MTRACE_EXPORT int execve(const char* path, char* const argv[], char* const envp[]) noexcept {
  if (!start() || g_real.execve == nullptr) return absent();
  return become([=] { return g_real.execve(path, argv, envp); });
}
MTRACE_EXPORT int execv(const char* path, char* const argv[]) noexcept {
  if (!start() || g_real.execv == nullptr) return absent();
  return become([=] { return g_real.execv(path, argv); });
}
MTRACE_EXPORT int execvp(const char* file, char* const argv[]) noexcept {
  if (!start() || g_real.execvp == nullptr) return absent();
  return become([=] { return g_real.execvp(file, argv); });
}
MTRACE_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) noexcept {
  if (!start() || g_real.execvpe == nullptr) return absent();
  return become([=] { return g_real.execvpe(file, argv, envp); });
}
MTRACE_EXPORT int fexecve(int fd, char* const argv[], char* const envp[]) noexcept {
  if (!start() || g_real.fexecve == nullptr) return absent();
  return become([=] { return g_real.fexecve(fd, argv, envp); });
}
MTRACE_EXPORT int execveat(int fd, const char* path, char* const argv[], char* const envp[],
                           int flags) noexcept {
  if (!start() || g_real.execveat == nullptr) return absent();
  return become([=] { return g_real.execveat(fd, path, argv, envp, flags); });
}
MTRACE_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  MTRACE_ARGUMENTS(first, list, argv);
  va_end(list);
  return execv(path, argv);
}
MTRACE_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
  MTRACE_ARGUMENTS(first, list, argv);
  va_end(list);
  return execvp(file, argv);
}
MTRACE_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  MTRACE_ARGUMENTS(first, list, argv);
  char* const* envp = va_arg(list, char* const*);
  va_end(list);
  return execve(path, argv, envp);
}

MTRACE_EXPORT pid_t _Fork() noexcept {
  if (!start() || g_real.fork_alone == nullptr) return absent();
  prepare_fork();
  const pid_t child = g_real.fork_alone();
  if (child == 0) leave_parents_ledger();
  return child;
}

// A filter of system calls comes after one of these two. Only words that the library can do without
// are given up; see base/probe.h.
MTRACE_EXPORT int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long words[4];
  for (unsigned long& word : words) word = va_arg(list, unsigned long);
  va_end(list);
  if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) sys::only_probe();
  if (g_real.prctl != nullptr) {
    return g_real.prctl(option, words[0], words[1], words[2], words[3]);
  }
  const long result = sys::raw_prctl(option, words[0], words[1], words[2], words[3]);
  if (!sys::failed(result)) return static_cast<int>(result);
  if (is_relocated()) errno = static_cast<int>(-result);
  return -1;
}
