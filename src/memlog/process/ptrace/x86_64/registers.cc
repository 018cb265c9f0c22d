#include "process/ptrace/registers.h"

#include <sys/syscall.h>

namespace mtrace::process {
namespace {

constexpr int64_t kOwnCalls[] = {SYS_epoll_wait, SYS_poll, SYS_select, SYS_pause};

}  // namespace

void take_registers(const user_regs_struct& registers, cfi::FrameRegisters* frame) {
  unsigned number = 0;
  for (const unsigned long long value :
       {registers.rax, registers.rdx, registers.rcx, registers.rbx, registers.rsi, registers.rdi,
        registers.rbp, registers.rsp, registers.r8, registers.r9, registers.r10, registers.r11,
        registers.r12, registers.r13, registers.r14, registers.r15, registers.rip}) {
    frame->set(number++, value);
  }
}

int64_t current_call(const user_regs_struct& registers, const TargetMemory&) {
  return static_cast<int64_t>(registers.orig_rax);
}

const std::span<const int64_t> kOwnWaitingCalls = kOwnCalls;

}  // namespace mtrace::process
