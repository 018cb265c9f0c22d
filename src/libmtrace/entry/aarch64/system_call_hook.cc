#include <linux/sched.h>
#include <sys/syscall.h>

// As for x86_64. There is no fork(2), and all arguments are in registers.
static_assert(SYS_prctl == 167 && SYS_seccomp == 277 && SYS_clone == 220);
static_assert((CLONE_VM | CLONE_VFORK | CLONE_THREAD) == 0x14100);
asm(R"(
  .text
  .p2align 4
  .globl syscall
  .type syscall, %function
syscall:
  .cfi_startproc
  hint #34
  cmp x0, #167
  b.eq 1f
  cmp x0, #277
  b.eq 1f
  cmp x0, #220
  b.eq 2f
0:
  adrp x16, mtrace_next_system_call
  ldr x16, [x16, :lo12:mtrace_next_system_call]
  cbz x16, 1f
  br x16
2:
  mov w17, #0x4100
  movk w17, #1, lsl #16
  tst x1, x17
  b.ne 0b
  cbnz x2, 0b
1:
  b mtrace_look_at_system_call
  .cfi_endproc
  .size syscall, . - syscall
)");
