// What a stopped thread's registers say. Each processor has a file of its own with these functions.
#pragma once

#include <sys/user.h>

#include <cstdint>
#include <span>

#include "cfi/frame_registers.h"
#include "process/inspect/target_memory.h"

namespace mtrace::process {

// Puts all registers that a walk follows into `frame`.
void take_registers(const user_regs_struct& registers, cfi::FrameRegisters* frame);

// Returns the number of the system call that the thread is in, or will begin or begin again at
// once; negative: none.
int64_t current_call(const user_regs_struct& registers, const TargetMemory& memory);

// System calls that wait and that only this processor has.
extern const std::span<const int64_t> kOwnWaitingCalls;

}  // namespace mtrace::process
