#include <linux/sched.h>
#include <sys/syscall.h>

// syscall(2) of libc. In assembly, so that it jumps on with the caller's frame: a call may return
// twice, or on another stack, and the word behind the return address need not be an argument. A
// fork is a clone(2) without CLONE_VM, CLONE_VFORK and CLONE_THREAD, on the same stack.
static_assert(SYS_prctl == 157 && SYS_seccomp == 317 && SYS_fork == 57 && SYS_clone == 56);
static_assert((CLONE_VM | CLONE_VFORK | CLONE_THREAD) == 0x14100);
asm(R"(
  .text
  .p2align 4
  .globl syscall
  .type syscall, @function
syscall:
  .cfi_startproc
  endbr64
  cmpq $157, %rdi
  je 1f
  cmpq $317, %rdi
  je 1f
  cmpq $57, %rdi
  je 1f
  cmpq $56, %rdi
  je 2f
0:
  movq mtrace_next_system_call(%rip), %r11
  testq %r11, %r11
  jz 1f
  jmp *%r11
2:
  testl $0x14100, %esi
  jnz 0b
  testq %rdx, %rdx
  jnz 0b
1:
  pushq 8(%rsp)
  .cfi_adjust_cfa_offset 8
  call mtrace_look_at_system_call
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size syscall, . - syscall
)");
