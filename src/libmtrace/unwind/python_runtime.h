// The CPython interpreter of the process, wherever it is: in the program or in libpython. Found
// when a walk first meets the object. doc/python.md says how its frames are read.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "unwind/object.h"
#include "unwind/python_deaths.h"
#include "unwind/python_layout.h"

namespace mtrace::unwind {

struct PythonRuntime {
  uintptr_t base;              // load bias of its object
  uint32_t version;            // PY_VERSION_HEX
  const PythonLayout* layout;  // nullptr: none is known of this version
  uintptr_t runtime;           // _PyRuntime
  uintptr_t code_type;         // PyCode_Type
  CodeFree code_free;
  struct Part {
    uintptr_t begin;
    uintptr_t end;
  };
  Part loop[2];  // _PyEval_EvalFrameDefault, and the part of it that the compiler has moved away
  // Bytes from the CFA of the loop's frame down to its _PyCFrame; 0: not learned yet.
  mutable uint32_t cframe_below;
  mutable uint32_t attempts;  // to learn it that failed

  // A thread is ending the interpreter, and frees what other threads' frames lead to.
  bool is_ending() const {
    uintptr_t state;
    __builtin_memcpy(&state, reinterpret_cast<const char*>(runtime) + layout->finalizing,
                     sizeof state);
    return state != 0;
  }
  bool is_in_loop(uintptr_t address) const {
    return address - loop[0].begin < loop[0].end - loop[0].begin ||
           address - loop[1].begin < loop[1].end - loop[1].begin;
  }
};

// The interpreter that `object` contains; nullptr: none. `object` has been inspected.
// Async-signal-safe, lock-free; 100 ns for an object without one.
const PythonRuntime* find_python(const Object& object);

namespace internal {
[[gnu::visibility("hidden")]] extern const PythonRuntime* python;
[[gnu::visibility("hidden")]] extern bool python_is_off;
}  // namespace internal

// The one whose frames are read; nullptr: none.
inline const PythonRuntime* python_runtime() {
  return load(internal::python_is_off) ? nullptr : load_acquire(internal::python);
}

// A walk has met the loop of this one. True: from here on it is python_runtime(), unless Python
// frames are off. False: another is, which is still loaded, or its version is not covered.
bool use_python(const PythonRuntime& found);

// Python frames are read, or not. By a thread that is alone.
void read_python_frames(bool on);
inline bool python_frames_are_off() { return load(internal::python_is_off); }

// Why there are none of an interpreter that walks have met. They name the first one.
enum class PythonGap : uint32_t {
  kNone,
  kVersion,  // its layout is not known
  kSecond,   // there are two
  kState,    // no thread state was found where it should be
};
struct PythonCoverage {
  PythonGap gap;
  const PythonRuntime* python;  // nullptr: no gap
};
PythonCoverage python_coverage();
void note_python_gap(PythonGap gap, const PythonRuntime& python);

}  // namespace mtrace::unwind
