// Machine code in which a thread continues a system call that memlog's stop has interrupted; see
// process/ptrace/tasks.h, also for the frame at its stack pointer. Each copy of the library has
// the code, with call-frame information. Without the library, memlog puts it elsewhere.
#pragma once

namespace mtrace::format {

inline constexpr char kRestartSymbol[] = "mtrace_restart_code";

}  // namespace mtrace::format

// Position-independent. `frame`, `pushed`, `leaving`: call-frame information for three positions of
// the stack pointer: at the frame, one word below it, and in the caller, with the return address in
// rcx.
//
// A system call preserves all registers but rax, rcx and r11, and compilers rely on that. The code
// leaves in rcx and r11 what the program's own system call would have left there. Some code relies
// on the flags, so they are restored, too.
#define MTRACE_RESTART_ARGUMENTS \
  "mov 24(%rsp), %rdi\n"         \
  "mov 32(%rsp), %rsi\n"         \
  "mov 40(%rsp), %rdx\n"         \
  "mov 48(%rsp), %r10\n"         \
  "mov 56(%rsp), %r8\n"          \
  "mov 64(%rsp), %r9\n"
#define MTRACE_RESTART_CODE(frame, pushed, leaving)                   \
  "mtrace_restart_code:\n" frame                                      \
  "syscall\n"                                                         \
  "mtrace_restart_direct:\n"                                          \
  "jmp 2f\n"                                                          \
  "syscall\n"                                                         \
  "mtrace_restart_polled:\n"                                          \
  "test %rax, %rax\n"                                                 \
  "js 2f\n"                                                           \
  "jz 1f\n" MTRACE_RESTART_ARGUMENTS                                  \
  "mov 80(%rsp), %rax\n"                                              \
  "syscall\n"                                                         \
  "mtrace_restart_called:\n"                                          \
  "jmp 2f\n"                                                          \
  "1:\n"                                                              \
  "mov 88(%rsp), %rax\n"                                              \
  "2:\n" MTRACE_RESTART_ARGUMENTS                                     \
  "mov 72(%rsp), %r11\n"                                              \
  "mov 8(%rsp), %rcx\n"                                               \
  "push %r11\n" pushed "popfq\n" frame "mov 16(%rsp), %rsp\n" leaving \
  "jmp *%rcx\n"                                                       \
  "mtrace_restart_last:\n"
