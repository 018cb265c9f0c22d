// The ends of a process that run no exit handler. In a vfork child they end the child only, and
// nothing is reported.
#include "base/process.h"
#include "hook/export.h"
#include "hook/lifecycle.h"
#include "hook/next_functions.h"
#include "hook/reporting.h"

using namespace mtrace::hook;

namespace {

[[noreturn]] void leave(void (*real)(int), int status) {
  if (start()) report_exit();
  if (real != nullptr) real(status);
  mtrace::sys::exit_group(status);
}

}  // namespace

MTRACE_EXPORT __attribute__((noreturn)) void _exit(int status) { leave(g_next.exit_now, status); }
MTRACE_EXPORT __attribute__((noreturn)) void _Exit(int status) noexcept {
  leave(g_next.exit_now_c, status);
}
