#include "unwind/python_frames.h"

#include <string.h>
#include <threads.h>

#include "unwind/stack_memory.h"

namespace mtrace::unwind {
namespace {

// The frame as a word of a stack, 0: it is none.
[[gnu::always_inline]] inline uint64_t word_of(const PythonRuntime& python, PythonAccess access,
                                               const PythonStep& frame, PythonFileSeen& last) {
  char room[kPythonSize + sizeof(uintptr_t)];
  const char* const code = see_python(access, frame.code, room, sizeof room);
  if (code == nullptr || frame.code % sizeof frame.code != 0 ||
      python_field<uintptr_t>(code, kPythonType) != python.code_type) {
    return 0;
  }
  // It is being freed, and what it leads to may be gone.
  if (python_field<uintptr_t>(code, 0) == 0) return 0;
  const intptr_t at = instruction_of(*python.layout, frame);
  // Before the first: the function has been entered and none of its instructions has begun.
  if (at < -1 || at >= python_field<intptr_t>(code, kPythonSize) ||
      at > format::PythonFrame::kMostInstructions) {
    return 0;
  }
  return format::PythonFrame::pack(number_of_code(python, access, frame.code, last),
                                   static_cast<int32_t>(at));
}

template <typename T>
bool read_careful(uintptr_t from, T* to) {
  return sys::read_memory(from, to, sizeof *to);
}

// Finds where in its frame [sp, cfa) the loop keeps its _PyCFrame: the thread's state has the
// address of the innermost one, and each that of the one before. All frames of the loop are laid
// out alike.
uintptr_t find_cframe(const PythonRuntime& python, uintptr_t sp, uintptr_t cfa) {
  constexpr auto kAccess = PythonAccess::kCareful;
  constexpr unsigned kMost = 16;
  const PythonLayout& layout = *python.layout;
  uint32_t key[2];
  uintptr_t at = 0;
  static_assert(kPythonKey == sizeof key[0]);
  if (!read_careful(python.runtime + layout.thread_state, &key) || key[0] == 0) return 0;
  const auto state = reinterpret_cast<uintptr_t>(tss_get(key[1]));
  if (state == 0 || !read_careful(state + layout.state_cframe, &at)) return 0;
  for (unsigned i = 0; i < kMost && at != 0; ++i) {
    uintptr_t place = 0;
    PythonStep frame;
    if (at >= sp && at < cfa && at % sizeof at == 0) {
      PythonFileSeen none = {};
      const bool good = read_careful(at + layout.cframe_frame, &place) &&
                        read_python_step(layout, kAccess, place, &frame) &&
                        word_of(python, kAccess, frame, none) != 0;
      if (!good) return 0;
      return cfa - at;
    }
    if (!read_careful(at + layout.cframe_previous, &at)) return 0;
  }
  return 0;
}

// 0: not known. A thread of another interpreter than the first has no such state.
uintptr_t learn_cframe(const PythonRuntime& python, uintptr_t sp, uintptr_t cfa) {
  constexpr uint32_t kMostAttempts = 1000;
  if (load(python.attempts) >= kMostAttempts) return 0;
  const uintptr_t below = find_cframe(python, sp, cfa);
  if (below != 0) {
    store(python.cframe_below, static_cast<uint32_t>(below));
  } else if (fetch_add(python.attempts, 1u) + 1 == kMostAttempts) {
    note_python_gap(PythonGap::kState, python);
  }
  return below;
}

// Where the loop's frame [sp, cfa) names the innermost function that it runs, 0: not known.
uintptr_t place_of_innermost(const PythonRuntime& python, uintptr_t sp, uintptr_t cfa) {
  if (cfa <= sp) return 0;
  uintptr_t below = load(python.cframe_below);
  if (below == 0) below = learn_cframe(python, sp, cfa);
  return below == 0 || below > cfa - sp ? 0 : cfa - below + python.layout->cframe_frame;
}

uintptr_t innermost(PythonAccess access, uintptr_t place) {
  // The C stack is there, but a thread that is interrupted may have switched to another one.
  if (!covers(trusted_stack(), place)) access = PythonAccess::kCareful;
  char room[sizeof(uintptr_t)];
  const char* const frame = see_python(access, place, room, sizeof room);
  return frame != nullptr ? python_field<uintptr_t>(frame, 0) : 0;
}

}  // namespace

[[gnu::noinline]] void add_python_frames(WalkState& state, uintptr_t cfa, PythonAccess access,
                                         WalkDraft* draft) {
  const PythonRuntime* const python = python_runtime();
  if (python == nullptr || format::PythonFrame::is_one(state.frames[state.count - 1])) return;
  if (python->is_ending()) access = PythonAccess::kCareful;
  const uint64_t deaths = code_deaths();
  const uintptr_t place = place_of_innermost(*python, state.sp, cfa);
  uintptr_t at = place == 0 ? 0 : innermost(access, place);
  if (draft != nullptr) {
    draft->enter_python(place, deaths);
    if (at == 0 || access == PythonAccess::kCareful) draft->leave_out();
  }
  PythonFileSeen last = {};
  for (bool more = at != 0; more && state.count < state.depth;) {
    PythonStep step;
    const bool found = read_python_step(*python->layout, access, at, &step);
    const uint64_t word = found ? word_of(*python, access, step, last) : 0;
    if (word == 0) {
      if (draft != nullptr) draft->leave_out();
      return;
    }
    state.add(word);
    if (draft != nullptr) draft->add_python_function(step.instruction, step.entry);
    more = !step.entry;
    at = step.previous;
  }
}

}  // namespace mtrace::unwind
