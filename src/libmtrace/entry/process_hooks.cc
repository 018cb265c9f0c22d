// Hooks of exec, posix_spawn, _Fork and daemon.
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>

#include "life/fork.h"
#include "life/image.h"
#include "life/lifecycle.h"
#include "life/reporting.h"
#include "next/export.h"
#include "next/next_functions.h"
#include "record/thread_state.h"

namespace mtrace::hook {
namespace {

// Calls call(envp). For a program that does not take this library, or would not find it, passes an
// environment without the library: in this frame, because the memory of a child of vfork is its
// parent's.
template <typename Call>
[[gnu::noinline]] int with_environment(bool takes, char* const envp[], const Call& call) {
  const size_t room = takes && sees_library() ? 0 : room_without_library(envp);
  return room == 0 ? call(envp) : call(without_library(envp, alloca(room)));
}

// Makes a call that returns only when it fails. A child of vfork, whose memory is its parent's,
// leaves the parent's reports alone.
template <typename Call>
int become(bool takes, char* const envp[], const Call& call) {
  const Leaving leaving = leave_program();
  const int result = with_environment(takes, envp, call);
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
  start();
  if (g_next.execve == nullptr) return absent();
  return become(takes_library(path), envp,
                [=](char* const* given) { return g_next.execve(path, argv, given); });
}
MTRACE_EXPORT int execv(const char* path, char* const argv[]) noexcept {
  start();
  if (g_next.execv == nullptr) return absent();
  return become(takes_library(path), environ, [=](char* const* given) {
    return given == environ ? g_next.execv(path, argv) : g_next.execve(path, argv, given);
  });
}
MTRACE_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) noexcept {
  start();
  if (g_next.execvpe == nullptr) return absent();
  return become(found_takes_library(file), envp,
                [=](char* const* given) { return g_next.execvpe(file, argv, given); });
}
MTRACE_EXPORT int execvp(const char* file, char* const argv[]) noexcept {
  start();
  if (g_next.execvp == nullptr) return absent();
  return become(found_takes_library(file), environ, [=](char* const* given) {
    return given == environ ? g_next.execvp(file, argv) : g_next.execvpe(file, argv, given);
  });
}
MTRACE_EXPORT int fexecve(int fd, char* const argv[], char* const envp[]) noexcept {
  start();
  if (g_next.fexecve == nullptr) return absent();
  return become(takes_library(fd), envp,
                [=](char* const* given) { return g_next.fexecve(fd, argv, given); });
}
MTRACE_EXPORT int execveat(int fd, const char* path, char* const argv[], char* const envp[],
                           int flags) noexcept {
  start();
  if (g_next.execveat == nullptr) return absent();
  return become(takes_library_at(fd, path, flags), envp,
                [=](char* const* given) { return g_next.execveat(fd, path, argv, given, flags); });
}

// The process stays what it is. Calls inside libc (system, popen) do not reach these hooks.
MTRACE_EXPORT int posix_spawn(pid_t* pid, const char* path,
                              const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const argv[],
                              char* const envp[]) {
  start();
  if (g_next.posix_spawn == nullptr) return ENOSYS;
  return with_environment(takes_library(path), envp, [=](char* const* given) {
    return g_next.posix_spawn(pid, path, actions, attributes, argv, given);
  });
}
MTRACE_EXPORT int posix_spawnp(pid_t* pid, const char* file,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const argv[],
                               char* const envp[]) {
  start();
  if (g_next.posix_spawnp == nullptr) return ENOSYS;
  return with_environment(found_takes_library(file), envp, [=](char* const* given) {
    return g_next.posix_spawnp(pid, file, actions, attributes, argv, given);
  });
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
  start();
  if (g_next.fork_alone == nullptr) return absent();
  prepare_fork();
  const pid_t child = g_next.fork_alone();
  if (child == 0) leave_parents_tables();
  return child;
}

MTRACE_EXPORT int daemon(int keep_directory, int keep_files) noexcept {
  start();
  if (g_next.become_daemon == nullptr) return absent();
  t_thread.becomes_daemon = true;  // see fork_parent_handler()
  const int result = g_next.become_daemon(keep_directory, keep_files);
  t_thread.becomes_daemon = false;
  return result;
}
