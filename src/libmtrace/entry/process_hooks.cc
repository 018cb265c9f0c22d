// Hooks of the functions that start, replace and end a process, and that change its user or the
// actions of its signals.

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>

#include "base/machine.h"
#include "base/process.h"
#include "base/table_file.h"
#include "life/environment.h"
#include "life/fork.h"
#include "life/lifecycle.h"
#include "life/reporting.h"
#include "life/triggers.h"
#include "next/next_functions.h"
#include "record/thread_state.h"

namespace mtrace::entry {
namespace {

// Calls call(envp). For a program that does not take this library, or would not find it, passes an
// environment without the library: in this frame, because the memory of a child of vfork is its
// parent's.
template <typename Call>
[[gnu::noinline]] int with_environment(bool takes, char* const envp[], const Call& call) {
  const size_t room = takes && life::sees_library() ? 0 : life::room_without_library(envp);
  return room == 0 ? call(envp) : call(life::without_library(envp, alloca(room)));
}

// Makes a call that returns only when it fails. A child of vfork, whose memory is its parent's,
// leaves the parent's reports alone. Under a filter of system calls it calls sigaction only if the
// next program has this library, which calls sigaction at its start.
template <typename Call>
int become(bool takes, char* const envp[], const Call& call) {
  const life::ExecPreparation preparation = life::prepare_exec();
  const bool ignores = life::ignores_triggers() && life::room_without_library(envp) != 0;
  if (ignores) life::let_triggers_through(true);
  const int result = with_environment(takes, envp, call);
  const int error = errno;
  if (ignores) life::let_triggers_through(false);
  life::undo_exec(preparation);
  errno = error;
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
}  // namespace mtrace::entry

using namespace mtrace;
using namespace mtrace::entry;

MTRACE_EXPORT int execve(const char* path, char* const argv[], char* const envp[]) noexcept {
  life::start();
  if (next::g_next.execve == nullptr) return absent();
  return become(life::takes_library(path), envp,
                [=](char* const* given) { return next::g_next.execve(path, argv, given); });
}
MTRACE_EXPORT int execv(const char* path, char* const argv[]) noexcept {
  life::start();
  if (next::g_next.execv == nullptr) return absent();
  return become(life::takes_library(path), environ, [=](char* const* given) {
    return given == environ ? next::g_next.execv(path, argv)
                            : next::g_next.execve(path, argv, given);
  });
}
MTRACE_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) noexcept {
  life::start();
  if (next::g_next.execvpe == nullptr) return absent();
  return become(life::found_takes_library(file), envp,
                [=](char* const* given) { return next::g_next.execvpe(file, argv, given); });
}
MTRACE_EXPORT int execvp(const char* file, char* const argv[]) noexcept {
  life::start();
  if (next::g_next.execvp == nullptr) return absent();
  return become(life::found_takes_library(file), environ, [=](char* const* given) {
    return given == environ ? next::g_next.execvp(file, argv)
                            : next::g_next.execvpe(file, argv, given);
  });
}
MTRACE_EXPORT int fexecve(int fd, char* const argv[], char* const envp[]) noexcept {
  life::start();
  if (next::g_next.fexecve == nullptr) return absent();
  return become(life::takes_library(fd), envp,
                [=](char* const* given) { return next::g_next.fexecve(fd, argv, given); });
}
MTRACE_EXPORT int execveat(int fd, const char* path, char* const argv[], char* const envp[],
                           int flags) noexcept {
  life::start();
  if (next::g_next.execveat == nullptr) return absent();
  return become(life::takes_library_at(fd, path, flags), envp, [=](char* const* given) {
    return next::g_next.execveat(fd, path, argv, given, flags);
  });
}

// The process stays what it is. Calls inside libc (system, popen) do not reach these hooks.
MTRACE_EXPORT int posix_spawn(pid_t* pid, const char* path,
                              const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const argv[],
                              char* const envp[]) {
  life::start();
  if (next::g_next.posix_spawn == nullptr) return ENOSYS;
  return with_environment(life::takes_library(path), envp, [=](char* const* given) {
    return next::g_next.posix_spawn(pid, path, actions, attributes, argv, given);
  });
}
MTRACE_EXPORT int posix_spawnp(pid_t* pid, const char* file,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const argv[],
                               char* const envp[]) {
  life::start();
  if (next::g_next.posix_spawnp == nullptr) return ENOSYS;
  return with_environment(life::found_takes_library(file), envp, [=](char* const* given) {
    return next::g_next.posix_spawnp(pid, file, actions, attributes, argv, given);
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
  life::start();
  if (next::g_next.fork_alone == nullptr) return absent();
  life::prepare_fork();
  const pid_t child = next::g_next.fork_alone();
  if (child == 0) life::leave_parents_tables();
  return child;
}

MTRACE_EXPORT int daemon(int keep_directory, int keep_files) noexcept {
  life::start();
  if (next::g_next.become_daemon == nullptr) return absent();
  record::t_thread.becomes_daemon = true;  // see fork_parent_handler()
  const int result = next::g_next.become_daemon(keep_directory, keep_files);
  record::t_thread.becomes_daemon = false;
  return result;
}

// ---- Hooks of the start of main and of the functions that end a process. In a vfork child the
// latter end the child only, and nothing is reported.
//
// exit, quick_exit and __libc_start_main go on by a jump, so that call stacks are as without the
// library. Under other names here: libc's headers declare the first two noreturn, and compilers
// make no jump to such a function.

namespace {

[[noreturn]] void leave_by(void (*real)(int), int status) {
  if (life::start()) life::report_exit();
  if (real != nullptr) real(status);
  mtrace::base::exit_group(status);
}

// The program's stack may be unaligned here.
[[gnu::noinline]] MTRACE_REALIGN void begin_exit() {
  if (life::start()) life::hold_exit();
}

// An attached library registers no handler: another thread may have been stopped with libc's lock
// of them held. What the program's own handlers of quick_exit free is live in its report.
[[gnu::noinline]] MTRACE_REALIGN void begin_quick_exit() {
  if (!life::start()) return;
  life::hold_exit();
  if (life::is_late()) life::report_exit();
}

[[gnu::noinline]] MTRACE_REALIGN next::MainFunction* begin_main(next::MainFunction* main) {
  life::start();
  next::find_next_functions();
  return life::held_main(main);
}

}  // namespace

MTRACE_EXPORT_AS_IT_IS void mtrace_begin_exit(int status) asm("exit");
void mtrace_begin_exit(int status) {
  begin_exit();
  return next::g_next.exit_usual(status);
}

MTRACE_EXPORT_AS_IT_IS void mtrace_begin_quick_exit(int status) asm("quick_exit");
void mtrace_begin_quick_exit(int status) {
  begin_quick_exit();
  return next::g_next.exit_quick(status);
}

MTRACE_EXPORT_AS_IT_IS int mtrace_begin_main(next::MainFunction* main, int count, char** arguments,
                                             void (*init)(), void (*fini)(), void (*loader_fini)(),
                                             void* stack_end) asm("__libc_start_main");
int mtrace_begin_main(next::MainFunction* main, int count, char** arguments, void (*init)(),
                      void (*fini)(), void (*loader_fini)(), void* stack_end) {
  main = begin_main(main);
  return next::g_next.start_main(main, count, arguments, init, fini, loader_fini, stack_end);
}

MTRACE_EXPORT [[gnu::noreturn]] void _exit(int status) { leave_by(next::g_next.exit_now, status); }
MTRACE_EXPORT [[gnu::noreturn]] void _Exit(int status) noexcept {
  leave_by(next::g_next.exit_now_c, status);
}

// ---- Changes of the user. A process that gives up root for good gives its ledger to the new user,
// who could neither grow the file nor remove it from a directory like /dev/shm. One that can become
// root again keeps it: another process of that user must not write to tables that root follows.

namespace mtrace::entry {
namespace {

constexpr uid_t kUnchanged = static_cast<uid_t>(-1);

// Calls call(), by which this process becomes `user` for good.
template <typename Call>
int become_user(uid_t user, const Call& call) {
  const bool gives = user != 0 && user != kUnchanged && life::is_own_process();
  const long owner = gives ? base::give_table_file(user) : -1;
  const int result = call();
  if (result != 0 && owner >= 0) base::give_table_file(static_cast<uid_t>(owner));
  return result;
}

}  // namespace
}  // namespace mtrace::entry

MTRACE_EXPORT int setuid(uid_t user) noexcept {
  life::start();
  if (next::g_next.setuid == nullptr) return absent();
  return become_user(user, [=] { return next::g_next.setuid(user); });
}
MTRACE_EXPORT int setreuid(uid_t real, uid_t effective) noexcept {
  life::start();
  if (next::g_next.setreuid == nullptr) return absent();
  return become_user(real == effective ? real : kUnchanged,
                     [=] { return next::g_next.setreuid(real, effective); });
}
MTRACE_EXPORT int setresuid(uid_t real, uid_t effective, uid_t saved) noexcept {
  life::start();
  if (next::g_next.setresuid == nullptr) return absent();
  return become_user(real == effective && real == saved ? real : kUnchanged,
                     [=] { return next::g_next.setresuid(real, effective, saved); });
}

// ---- Hooks of the functions that set the action of a signal.

namespace {

constexpr int kSystemV = static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_INTERRUPT);

// Reads `real` after start(), which may have set it.
life::SetHandler known(const life::SetHandler& real) {
  life::start();
  return real;
}

}  // namespace

MTRACE_EXPORT int sigaction(int number, const struct sigaction* action,
                            struct sigaction* old) noexcept {
  life::start();
  return life::change_action(number, action, old);
}

MTRACE_EXPORT next::SignalHandler signal(int number, next::SignalHandler handler) noexcept {
  return life::change_handler(known(next::g_next.signal), number, handler, SA_RESTART);
}
MTRACE_EXPORT next::SignalHandler bsd_signal(int number, next::SignalHandler handler) noexcept {
  life::start();
  return life::change_handler(
      next::g_next.bsd_signal != nullptr ? next::g_next.bsd_signal : next::g_next.signal, number,
      handler, SA_RESTART);
}
MTRACE_EXPORT next::SignalHandler sysv_signal(int number, next::SignalHandler handler) noexcept {
  return life::change_handler(known(next::g_next.sysv_signal), number, handler, kSystemV);
}
MTRACE_EXPORT next::SignalHandler __sysv_signal(int number, next::SignalHandler handler) noexcept {
  return life::change_handler(known(next::g_next.sysv_signal_reserved), number, handler, kSystemV);
}
MTRACE_EXPORT next::SignalHandler sigset(int number, next::SignalHandler handler) noexcept {
  return life::change_handler(known(next::g_next.sigset), number, handler, 0);
}
