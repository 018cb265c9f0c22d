#include "process/ptrace/registers.h"

#include <libunwind.h>
#include <sys/syscall.h>

namespace mtrace::process {
namespace {

constexpr int64_t kOwnCalls[] = {SYS_epoll_wait, SYS_poll, SYS_select, SYS_pause};

}  // namespace

const unsigned long long* walked_register(const user_regs_struct& registers, int number) {
  switch (number) {
#define MTRACE_REGISTER(unwind, member) \
  case UNW_X86_64_##unwind:             \
    return &registers.member;
    MTRACE_REGISTER(RAX, rax)
    MTRACE_REGISTER(RDX, rdx)
    MTRACE_REGISTER(RCX, rcx)
    MTRACE_REGISTER(RBX, rbx)
    MTRACE_REGISTER(RSI, rsi)
    MTRACE_REGISTER(RDI, rdi)
    MTRACE_REGISTER(RBP, rbp)
    MTRACE_REGISTER(RSP, rsp)
    MTRACE_REGISTER(R8, r8)
    MTRACE_REGISTER(R9, r9)
    MTRACE_REGISTER(R10, r10)
    MTRACE_REGISTER(R11, r11)
    MTRACE_REGISTER(R12, r12)
    MTRACE_REGISTER(R13, r13)
    MTRACE_REGISTER(R14, r14)
    MTRACE_REGISTER(R15, r15)
    MTRACE_REGISTER(RIP, rip)
#undef MTRACE_REGISTER
    default:
      return nullptr;
  }
}

int64_t current_call(const user_regs_struct& registers, const TargetMemory&) {
  return static_cast<int64_t>(registers.orig_rax);
}

const std::span<const int64_t> kOwnWaitingCalls = kOwnCalls;

}  // namespace mtrace::process
