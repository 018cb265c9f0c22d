// The Python functions that a frame of CPython's evaluation loop runs. doc/python.md explains how
// they are found.
#pragma once

#include <cstdint>

#include "modules/c_library.h"
#include "python/code.h"
#include "python/runtime.h"
#include "python/text.h"
#include "unwind/slow_walk.h"
#include "unwind/walk_draft.h"

namespace mtrace::unwind {

// A frame of the interpreter's (_PyInterpreterFrame).
struct PythonStep {
  uintptr_t code;
  uintptr_t previous;
  uintptr_t instruction;
  uint8_t entry_byte;
  bool entry;  // the loop was entered with this frame
};

[[gnu::always_inline]] inline bool read_python_step(const PythonLayout& layout, PythonAccess access,
                                                    uintptr_t at, PythonStep* step) {
  char room[kPythonMostFrame];
  const char* const bytes = see_python(access, at, room, layout.frame_bytes);
  if (bytes == nullptr || at % sizeof at != 0) return false;
  step->code = python_field<uintptr_t>(bytes, layout.frame_code);
  step->previous = python_field<uintptr_t>(bytes, layout.frame_previous);
  step->instruction = python_field<uintptr_t>(bytes, layout.frame_instruction);
  step->entry_byte = static_cast<uint8_t>(bytes[layout.frame_entry]);
  step->entry = step->entry_byte == layout.entry_mark;
  return true;
}

// Index of the frame's instruction in its code; out of range if the code does not hold it.
inline intptr_t instruction_of(const PythonLayout& layout, const PythonStep& step) {
  const uintptr_t first = step.code + layout.code_instructions;
  return static_cast<intptr_t>(step.instruction - first) / intptr_t{kPythonInstruction};
}

// Address of the word that names this thread's innermost function, for a layout in which the
// thread's state has it; 0: no state, or it is not known yet which one is the thread's.
inline uintptr_t place_in_thread_state(const PythonRuntime& python) {
  const uint32_t key = load(python.state_key);
  const auto state = key == 0 ? 0 : reinterpret_cast<uintptr_t>(g_libc.thread_value(key - 1));
  return state == 0 ? 0 : state + python.layout->state_frame;
}

}  // namespace mtrace::unwind
