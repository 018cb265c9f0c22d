// Hooks of the start of main and of the functions that end a process. In a vfork child the latter
// end the child only, and nothing is reported.
//
// exit, quick_exit and __libc_start_main go on by a jump, so that call stacks are as without the
// library. Under other names here: libc's headers declare the first two noreturn, and compilers
// make no jump to such a function.
#include "base/process.h"
#include "life/exit_hold.h"
#include "life/lifecycle.h"
#include "life/reporting.h"
#include "next/export.h"
#include "next/next_functions.h"

using namespace mtrace::hook;

namespace {

[[noreturn]] void leave_by(void (*real)(int), int status) {
  if (start()) report_exit();
  if (real != nullptr) real(status);
  mtrace::sys::exit_group(status);
}

// The program's stack may be unaligned here.
[[gnu::noinline]] MTRACE_REALIGN void begin_exit() {
  if (start()) hold_exit();
}

// An attached library registers no handler: another thread may have been stopped with libc's lock
// of them held. What the program's own handlers of quick_exit free is live in its report.
[[gnu::noinline]] MTRACE_REALIGN void begin_quick_exit() {
  if (!start()) return;
  hold_exit();
  if (is_late()) report_exit();
}

[[gnu::noinline]] MTRACE_REALIGN MainFunction* begin_main(MainFunction* main) {
  start();
  find_next_functions();
  return held_main(main);
}

}  // namespace

MTRACE_EXPORT_AS_IT_IS void mtrace_begin_exit(int status) asm("exit");
void mtrace_begin_exit(int status) {
  begin_exit();
  return g_next.exit_usual(status);
}

MTRACE_EXPORT_AS_IT_IS void mtrace_begin_quick_exit(int status) asm("quick_exit");
void mtrace_begin_quick_exit(int status) {
  begin_quick_exit();
  return g_next.exit_quick(status);
}

MTRACE_EXPORT_AS_IT_IS int mtrace_begin_main(MainFunction* main, int count, char** arguments,
                                             void (*init)(), void (*fini)(), void (*loader_fini)(),
                                             void* stack_end) asm("__libc_start_main");
int mtrace_begin_main(MainFunction* main, int count, char** arguments, void (*init)(),
                      void (*fini)(), void (*loader_fini)(), void* stack_end) {
  main = begin_main(main);
  return g_next.start_main(main, count, arguments, init, fini, loader_fini, stack_end);
}

MTRACE_EXPORT [[gnu::noreturn]] void _exit(int status) { leave_by(g_next.exit_now, status); }
MTRACE_EXPORT [[gnu::noreturn]] void _Exit(int status) noexcept {
  leave_by(g_next.exit_now_c, status);
}
