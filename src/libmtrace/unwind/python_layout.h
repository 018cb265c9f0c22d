// Where CPython keeps what leads from a thread to the Python functions that it runs: offsets in
// bytes, from the headers of each version (Include/internal). tests/unit/library compares those of
// the version that is installed.
#pragma once

#include <cstdint>

namespace mtrace::unwind {

struct PythonLayout {
  uint32_t version;  // major and minor, as in PY_VERSION_HEX

  // _PyRuntimeState
  uint16_t finalizing;    // the thread that ends the interpreter
  uint16_t thread_state;  // Py_tss_t of PyGILState_GetThisThreadState()

  uint16_t state_cframe;       // PyThreadState.cframe
  uint16_t cframe_frame;       // _PyCFrame.current_frame
  uint16_t cframe_previous;    // _PyCFrame.previous
  uint16_t frame_code;         // _PyInterpreterFrame.f_code
  uint16_t frame_previous;     // .previous
  uint16_t frame_instruction;  // .prev_instr
  uint16_t frame_entry;        // .is_entry, a byte
  uint16_t frame_bytes;        // all of these

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
     .finalizing = 24,
     .thread_state = 592,
     .state_cframe = 56,
     .cframe_frame = 8,
     .cframe_previous = 16,
     .frame_code = 32,
     .frame_previous = 48,
     .frame_instruction = 56,
     .frame_entry = 68,
     .frame_bytes = 72,
     .code_first_line = 72,
     .code_file = 112,
     .code_name = 128,
     .code_table = 136,
     .code_instructions = 184,
     .text_ascii = 48,
     .text_other = 72},
};

// The same in all versions.
inline constexpr unsigned kPythonType = 8;         // PyObject.ob_type
inline constexpr unsigned kPythonTypeFree = 48;    // PyTypeObject.tp_dealloc
inline constexpr unsigned kPythonSize = 16;        // PyVarObject.ob_size; PyASCIIObject.length
inline constexpr unsigned kPythonTextState = 32;   // PyASCIIObject.state
inline constexpr unsigned kPythonBytes = 32;       // PyBytesObject.ob_sval
inline constexpr unsigned kPythonKey = 4;          // Py_tss_t._key, after a word that is not 0 when
                                                   // it has been made
inline constexpr unsigned kPythonInstruction = 2;  // bytes of one

}  // namespace mtrace::unwind
