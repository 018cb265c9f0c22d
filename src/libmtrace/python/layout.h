// Offsets in bytes of the CPython fields that lead from a thread to the Python functions that it
// runs: from the headers of each version (Include/internal), or exported by the interpreter itself.
// tests/unit/library compares those of the version that is installed.
#pragma once

#include <cstdint>

namespace mtrace::unwind {

struct PythonLayout {
  uint32_t version;  // major and minor, as in PY_VERSION_HEX
  bool is_tried;     // with an interpreter of this version

  // _PyRuntimeState
  uint16_t finalizing;  // the thread that ends the interpreter

  // The way to the innermost function. Either the loop's C frame has a _PyCFrame, and the thread
  // state names the innermost one; or the thread state names the function.
  uint16_t state_cframe;     // PyThreadState.cframe; 0: no such field
  uint16_t cframe_frame;     // _PyCFrame.current_frame
  uint16_t cframe_previous;  // _PyCFrame.previous
  uint16_t state_frame;      // PyThreadState.current_frame

  uint16_t frame_code;         // _PyInterpreterFrame.f_code, f_executable
  uint16_t frame_previous;     // .previous
  uint16_t frame_instruction;  // .prev_instr, instr_ptr
  // .is_entry, owner: a byte that holds entry_mark in the frame with which the loop was entered.
  uint16_t frame_entry;
  uint16_t frame_bytes;  // all of these
  uint8_t entry_mark;
  bool entry_is_empty;  // that frame runs no function, and lies in the loop's C frame

  // PyCodeObject
  uint16_t code_first_line;
  uint16_t code_file;
  uint16_t code_name;  // co_qualname
  uint16_t code_table;
  uint16_t code_instructions;  // co_code_adaptive

  uint16_t text_ascii;  // bytes of a compact str before its ASCII characters
  uint16_t text_other;  // before others
};

inline constexpr PythonLayout kPythonLayouts[] = {
    {.version = 0x030b,
     .is_tried = true,
     .finalizing = 24,
     .state_cframe = 56,
     .cframe_frame = 8,
     .cframe_previous = 16,
     .state_frame = 0,
     .frame_code = 32,
     .frame_previous = 48,
     .frame_instruction = 56,
     .frame_entry = 68,
     .frame_bytes = 72,
     .entry_mark = 1,
     .entry_is_empty = false,
     .code_first_line = 72,
     .code_file = 112,
     .code_name = 128,
     .code_table = 136,
     .code_instructions = 184,
     .text_ascii = 48,
     .text_other = 72},
    {.version = 0x030c,
     .is_tried = false,
     .finalizing = 24,
     .state_cframe = 56,
     .cframe_frame = 0,
     .cframe_previous = 8,
     .state_frame = 0,
     .frame_code = 0,
     .frame_previous = 8,
     .frame_instruction = 56,
     .frame_entry = 70,
     .frame_bytes = 72,
     .entry_mark = 3,
     .entry_is_empty = true,
     .code_first_line = 68,
     .code_file = 112,
     .code_name = 128,
     .code_table = 136,
     .code_instructions = 192,
     .text_ascii = 40,
     .text_other = 56},
};

// Equal in all versions.
inline constexpr unsigned kPythonType = 8;            // PyObject.ob_type
inline constexpr unsigned kPythonTypeBasicSize = 32;  // PyTypeObject.tp_basicsize
inline constexpr unsigned kPythonTypeFree = 48;       // PyTypeObject.tp_dealloc
inline constexpr unsigned kPythonSize = 16;           // PyVarObject.ob_size; PyASCIIObject.length
inline constexpr unsigned kPythonTextState = 32;      // PyASCIIObject.state
inline constexpr unsigned kPythonBytes = 32;          // PyBytesObject.ob_sval
inline constexpr unsigned kPythonInstruction = 2;     // bytes per instruction
inline constexpr unsigned kPythonMostFrame = 80;      // no layout has larger ones
inline constexpr unsigned kPythonMostCode = 256;      // of a code object before its instructions

// CPython 3.13 exports its offsets: words of 64 bits at the start of _PyRuntime (_Py_DebugOffsets),
// with the PY_VERSION_HEX that they belong to.
inline constexpr unsigned kPythonExportedWords = 71;
// Sets the layout of `version` from these words. False: they are no offsets of 3.13, belong to an
// interpreter without a global lock (the heads of its objects differ), or name impossible places.
bool exported_layout(const uint64_t* words, uint32_t version, PythonLayout* layout);

}  // namespace mtrace::unwind
