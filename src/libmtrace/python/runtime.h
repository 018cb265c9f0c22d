// The CPython interpreter of the process, wherever it is: in the program or in libpython. Found
// when a walk first comes to the object. doc/internals/python.md says how its frames are read.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "format/python.h"
#include "modules/c_library.h"
#include "modules/object.h"
#include "python/layout.h"

namespace mtrace::unwind {

// The tp_dealloc of code objects in `object`: its address and its value. `word` is nullptr: not
// known, or the value is not a function of the object.
struct CodeFree {
  uintptr_t* word;
  uintptr_t function;
};

struct PythonRuntime {
  uintptr_t base;              // load bias of its object
  uint32_t version;            // PY_VERSION_HEX
  const PythonLayout* layout;  // nullptr: none is known, because of `gap`
  format::PythonGap gap;       // why its frames are not read; kNone: they are
  PythonLayout exported;       // the layout that it exports, from 3.13 on
  uintptr_t runtime;           // _PyRuntime
  uintptr_t code_type;         // PyCode_Type
  CodeFree code_free;
  struct Part {
    uintptr_t begin;
    uintptr_t end;
  };
  Part loop[2];  // _PyEval_EvalFrameDefault, and the part of it that the compiler has moved away
  Part image;    // of its object
  // Learned: the way from a thread to its functions; 0: not yet. Bytes from the CFA of the loop's
  // frame down to its _PyCFrame; without one, the key (tss_t) of the thread's state plus 1.
  mutable uint32_t cframe_below;
  mutable uint32_t state_key;
  mutable uint32_t attempts;  // failed attempts to learn either

  // Whether a thread is ending the interpreter, which frees what other threads' frames lead to.
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

// Counts the code objects that CPython frees. While none is freed, an instruction's address stands
// for the same function: known walks (python/walks.cc) need not compare names again.
//
// The library puts a function of its own, which counts and goes on to the interpreter's, into the
// tp_dealloc of PyCode_Type: the one word of the interpreter's memory that the library writes.
namespace internal {
[[gnu::visibility("hidden")]] extern uint64_t code_deaths;
}

// Never decreases, and grows when a code object is freed. 0: not counted.
inline uint64_t code_deaths() { return load_acquire(internal::code_deaths); }

// Which interpreters' frames are read.
enum class PythonFrames : uint32_t { kOff, kTried, kUntried };

namespace internal {
[[gnu::visibility("hidden")]] extern const PythonRuntime* python;
[[gnu::visibility("hidden")]] extern PythonFrames python_frames;
}  // namespace internal

// The interpreter whose frames are read; nullptr: none.
inline const PythonRuntime* python_runtime() {
  return load(internal::python_frames) == PythonFrames::kOff ? nullptr
                                                             : load_acquire(internal::python);
}

// Address of the word that names this thread's innermost function, for a layout in which the
// thread's state has it; 0: no state, or it is not known yet which one is the thread's.
inline uintptr_t place_in_thread_state(const PythonRuntime& python) {
  const uint32_t key = load(python.state_key);
  const auto state =
      key == 0 ? 0 : reinterpret_cast<uintptr_t>(modules::g_libc.thread_value(key - 1));
  return state == 0 ? 0 : state + python.layout->state_frame;
}

// Selects which interpreters' frames are read. No other thread may run.
void read_python_frames(PythonFrames which);
inline bool python_frames_are_off() { return load(internal::python_frames) == PythonFrames::kOff; }

// The first gap among the interpreters that walks have come to. Constant once its gap is past
// kBeingNoted. In the header of the ledger, where memlog reads it.
const format::PythonCoverage& python_coverage();
void note_python_gap(format::PythonGap gap, const PythonRuntime& python);

}  // namespace mtrace::unwind
