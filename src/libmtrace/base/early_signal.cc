#include "base/early_signal.h"

#include <signal.h>
#include <sys/syscall.h>

#include <cstdint>

#include "base/syscall.h"

// The trampoline (sa_restorer) to which handlers return. Debuggers know the two instructions by
// their bytes.
asm(R"(
  .pushsection .text
  .globl mtrace_return_from_signal
  .hidden mtrace_return_from_signal
  .type mtrace_return_from_signal, @function
mtrace_return_from_signal:
)" MTRACE_RETURN_FROM_SIGNAL R"(  .size mtrace_return_from_signal, . - mtrace_return_from_signal
  .popsection
)");
extern "C" [[gnu::visibility("hidden")]] void mtrace_return_from_signal();

namespace mtrace::sys {
namespace {

constexpr uint64_t kRestorer = 0x04000000;  // SA_RESTORER

// The kernel's struct sigaction.
struct Action {
  void (*handler)(int);
  uint64_t flags;
  void (*restorer)();
  uint64_t mask;
};

}  // namespace

bool catch_by_default(int signal, void (*handler)(int)) {
  Action now = {};
  if (failed(call(SYS_rt_sigaction, signal, nullptr, &now, sizeof now.mask))) return false;
  if (now.handler != SIG_DFL) return false;
  const Action ours = {handler, uint64_t{SA_RESTART} | SA_ONSTACK | kRestorer,
                       mtrace_return_from_signal, ~uint64_t{0}};
  return !failed(call(SYS_rt_sigaction, signal, &ours, nullptr, sizeof ours.mask));
}

}  // namespace mtrace::sys
