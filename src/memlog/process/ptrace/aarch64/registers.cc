#include "process/ptrace/registers.h"

#include <cerrno>
#include <iterator>

namespace mtrace::process {
namespace {

constexpr uint64_t kCallSize = 4;

bool is_call_at(uint64_t address, const TargetMemory& memory) {
  constexpr uint32_t kCall = 0xd4000001;  // svc #0
  uint32_t code = 0;
  return memory.read(address, &code, sizeof code) && code == kCall;
}

}  // namespace

void take_registers(const user_regs_struct& registers, cfi::FrameRegisters* frame) {
  for (unsigned i = 0; i < std::size(registers.regs); ++i) frame->set(i, registers.regs[i]);
  frame->set(cfi::kSp, registers.sp);
  frame->set(cfi::kPc, registers.pc);
}

// A call that begins again stands before its instruction; one that has ended with EINTR, behind it.
int64_t current_call(const user_regs_struct& registers, const TargetMemory& memory) {
  const bool ended = static_cast<int64_t>(registers.regs[0]) == -EINTR &&
                     is_call_at(registers.pc - kCallSize, memory);
  return ended || is_call_at(registers.pc, memory) ? static_cast<int64_t>(registers.regs[8]) : -1;
}

const std::span<const int64_t> kOwnWaitingCalls;

}  // namespace mtrace::process
