// DWARF expressions, as call-frame information uses them.
#pragma once

#include <cstdint>

#include "cfi/frame_registers.h"

namespace mtrace::unwind {

// Evaluates the DWARF expression whose uleb length stands at `place`; `initial`, when not null, is
// pushed first. False: malformed, too long, an operation without meaning here, an unknown
// register, or unreadable memory. Source: DWARF 5, sections 2.5 and 6.4.2.
bool evaluate(const Bounds& bounds, uintptr_t place, const uintptr_t* initial,
              const FrameRegisters& machine, FrameMemory* memory, uintptr_t* result);

}  // namespace mtrace::unwind
