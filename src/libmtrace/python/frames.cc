// The Python functions that a frame of CPython's evaluation loop runs. doc/internals/python.md
// explains how they are found.
#include <limits.h>
#include <string.h>

#include "python/code.h"
#include "python/runtime.h"
#include "python/text.h"
#include "unwind/slow_walk.h"
#include "unwind/stack_memory.h"
#include "unwind/walk_draft.h"

namespace mtrace::unwind {
namespace {

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
intptr_t instruction_of(const PythonLayout& layout, const PythonStep& step) {
  const uintptr_t first = step.code + layout.code_instructions;
  return static_cast<intptr_t>(step.instruction - first) / intptr_t{kPythonInstruction};
}

// The frame as a word of a stack; 0: it is no valid frame.
[[gnu::always_inline]] inline uint64_t word_of(const PythonRuntime& python, PythonAccess access,
                                               const PythonStep& frame, PythonFileSeen& last) {
  char room[kPythonSize + sizeof(uintptr_t)];
  const char* const code = see_python(access, frame.code, room, sizeof room);
  if (code == nullptr || frame.code % sizeof frame.code != 0 ||
      python_field<uintptr_t>(code, kPythonType) != python.code_type) {
    return 0;
  }
  // The code object is being freed, and what it refers to may be gone.
  if (python_field<uintptr_t>(code, 0) == 0) return 0;
  const intptr_t at = instruction_of(*python.layout, frame);
  // -1: the function has been entered and none of its instructions has begun.
  if (at < -1 || at >= python_field<intptr_t>(code, kPythonSize) ||
      at > format::PythonFrame::kMostInstructions) {
    return 0;
  }
  return format::PythonFrame::pack(number_of_code(python, access, frame.code, last),
                                   static_cast<int32_t>(at));
}

template <typename T>
bool read_careful(uintptr_t from, T* to) {
  return base::read_memory(from, to, sizeof *to);
}

// Finds the _PyCFrame in [sp, cfa), a frame of the loop's: the thread's state has the address of
// the innermost one, and each has that of the one before. 0: not there. All frames of the loop are
// laid out alike.
uintptr_t find_cframe(const PythonRuntime& python, uintptr_t state, uintptr_t sp, uintptr_t cfa) {
  constexpr unsigned kMost = 16;
  const PythonLayout& layout = *python.layout;
  uintptr_t at = 0;
  if (!read_careful(state + layout.state_cframe, &at)) return 0;
  for (unsigned i = 0; i < kMost && at != 0; ++i) {
    uintptr_t place = 0;
    PythonStep frame;
    if (at >= sp && at < cfa && at % sizeof at == 0) {
      PythonFileSeen none = {};
      const bool good = read_careful(at + layout.cframe_frame, &place) &&
                        read_python_step(layout, PythonAccess::kCareful, place, &frame) &&
                        word_of(python, PythonAccess::kCareful, frame, none) != 0;
      return good ? at : 0;
    }
    if (!read_careful(at + layout.cframe_previous, &at)) return 0;
  }
  return 0;
}

// Whether the functions that the thread's state leads to are those of the loop's frame [sp, cfa),
// the thread's innermost one: the entry that follows them lies in that frame.
bool leads_to_loop(const PythonRuntime& python, uintptr_t state, uintptr_t sp, uintptr_t cfa) {
  constexpr unsigned kMost = 256;
  uintptr_t at = 0;
  PythonStep frame;
  bool has_functions = false;
  if (!read_careful(state + python.layout->state_frame, &at)) return false;
  for (unsigned i = 0; i < kMost; ++i, at = frame.previous) {
    if (!read_python_step(*python.layout, PythonAccess::kCareful, at, &frame)) return false;
    if (frame.entry) return has_functions && at >= sp && at < cfa;
    PythonFileSeen none = {};
    if (word_of(python, PythonAccess::kCareful, frame, none) == 0) return false;
    has_functions = true;
  }
  return false;
}

// Learns from the loop's frame [sp, cfa) what leads from a thread to its functions. The interpreter
// has the thread's state in thread-specific data, under a key that it does not export. A thread of
// another interpreter than the first may have no such state.
[[gnu::noinline]] void learn(const PythonRuntime& python, uintptr_t sp, uintptr_t cfa) {
  constexpr uint32_t kMostAttempts = 1000;
  if (load(python.attempts) >= kMostAttempts || modules::libc().thread_value == nullptr) return;
  for (unsigned key = 0; key < PTHREAD_KEYS_MAX; ++key) {
    const auto state = reinterpret_cast<uintptr_t>(modules::libc().thread_value(key));
    if (state == 0 || state % sizeof state != 0) continue;
    if (python.layout->state_frame != 0 && leads_to_loop(python, state, sp, cfa)) {
      return store(python.state_key, key + 1);
    }
    const uintptr_t cframe =
        python.layout->state_cframe == 0 ? 0 : find_cframe(python, state, sp, cfa);
    if (cframe != 0) return store(python.cframe_below, static_cast<uint32_t>(cfa - cframe));
  }
  if (fetch_add(python.attempts, 1u) + 1 == kMostAttempts) {
    note_python_gap(format::PythonGap::kState, python);
  }
}

// Address of the word that names the innermost function of the loop's frame which `state` has come
// to and which ends at `cfa`; 0: not known.
uintptr_t place_of_innermost(const PythonRuntime& python, const WalkState& state, uintptr_t cfa) {
  if (cfa <= state.sp) return 0;
  if (load(python.cframe_below) == 0 && load(python.state_key) == 0) learn(python, state.sp, cfa);
  if (python.layout->state_frame != 0) {
    return state.next_python != 0 ? state.next_python : place_in_thread_state(python);
  }
  const uintptr_t below = load(python.cframe_below);
  return below == 0 || below > cfa - state.sp ? 0 : cfa - below + python.layout->cframe_frame;
}

uintptr_t innermost(PythonAccess access, uintptr_t place) {
  char room[sizeof(uintptr_t)];
  const char* const frame = see_python(access, place, room, sizeof room);
  return frame != nullptr ? python_field<uintptr_t>(frame, 0) : 0;
}

// Whether the function is one that the interpreter made to call an __init__: no line of a program.
bool is_made_up(const PythonRuntime& python, PythonAccess access, uintptr_t code) {
  if (code - python.image.begin >= python.image.end - python.image.begin) return false;
  char room[sizeof(uint32_t)];
  const char* const line =
      see_python(access, code + python.layout->code_first_line, room, sizeof room);
  return line != nullptr && python_field<uint32_t>(line, 0) == 0;
}

// The functions of a frame of the loop's.
class LoopFunctions {
 public:
  LoopFunctions(const PythonRuntime& python, PythonAccess access, WalkDraft* draft)
      : python_(python), access_(access), draft_(draft) {}

  // Adds the functions from the frame at `at` on, as long as there is room. `cfa`: where the loop's
  // own frame ends. False: the functions there are not this loop's.
  bool add(WalkState& state, uintptr_t at, uintptr_t cfa) {
    const PythonLayout& layout = *python_.layout;
    while (at != 0 && state.count < state.depth) {
      PythonStep step;
      if (!read_python_step(layout, access_, at, &step)) return leave_out(), true;
      if (step.entry && layout.entry_is_empty) {
        if (at < state.sp || at >= cfa) return leave_out(), false;
        note(step);
        state.next_python = at + layout.frame_previous;
        return true;
      }
      if (!layout.entry_is_empty || !is_made_up(python_, access_, step.code)) {
        const uint64_t word = word_of(python_, access_, step, last_);
        if (word == 0) return leave_out(), true;
        state.add(word);
      }
      note(step);
      if (step.entry) return true;
      at = step.previous;
    }
    return true;
  }

 private:
  void note(const PythonStep& step) {
    if (draft_ != nullptr) draft_->add_python_function(step.instruction, step.entry_byte);
  }
  void leave_out() {
    if (draft_ != nullptr) draft_->leave_out();
  }

  const PythonRuntime& python_;
  const PythonAccess access_;
  WalkDraft* const draft_;
  PythonFileSeen last_ = {};
};

}  // namespace

[[gnu::noinline]] void add_python_frames(WalkState& state, uintptr_t cfa, bool interrupted,
                                         WalkDraft* draft) {
  const PythonRuntime* const python = python_runtime();
  if (python == nullptr || format::PythonFrame::is_one(state.frames[state.count - 1])) return;
  const PythonAccess access =
      interrupted || python->is_ending() ? PythonAccess::kCareful : PythonAccess::kDirect;
  const uint64_t deaths = code_deaths();
  const uintptr_t place = place_of_innermost(*python, state, cfa);
  const bool of_thread = python->layout->state_frame != 0 && state.next_python == 0;
  // The C stack is mapped, but a thread that is interrupted may have switched to another one.
  const bool is_there = of_thread || covers(trusted_stack(), place);
  const uintptr_t at =
      place == 0 ? 0 : innermost(is_there ? access : PythonAccess::kCareful, place);
  if (draft != nullptr) {
    draft->enter_python(of_thread ? WalkDraft::kThreadState : place, deaths);
    if (at == 0 || access == PythonAccess::kCareful) draft->leave_out();
  }
  const uint64_t hash = state.hash;
  const uint32_t count = state.count;
  const bool of_loop = LoopFunctions(*python, access, draft).add(state, at, cfa);
  if (!of_loop) {
    state.hash = hash;
    state.count = count;
  }
  // An outer loop has functions; if none is found here, they are another state's of this thread.
  const bool of_other = state.next_python != 0 && at == 0;
  if (access == PythonAccess::kDirect && (!of_loop || of_other)) {
    note_python_gap(format::PythonGap::kState, *python);
  }
}

}  // namespace mtrace::unwind
