// Walks through Python's evaluation loop that need not be gone again: besides the words of the
// stack the functions have to be the same that the loop ran then.
#include <algorithm>

#include "unwind/python_frames.h"
#include "unwind/walk_memory.h"

namespace mtrace::unwind {
namespace {

constexpr unsigned kTellingFunctions = 3;

uintptr_t word_at(const Registers& from, uint64_t header) {
  const auto distance = static_cast<uint32_t>(header);
  return reinterpret_cast<const uintptr_t*>(from.sp)[distance];
}

// One for all walks that are remembered, so that its offsets are constants.
static_assert(sizeof kPythonLayouts == sizeof(PythonLayout));
constexpr const PythonLayout& kLayout = kPythonLayouts[0];

// The frame at `at`; nullptr: that is no address of one.
[[gnu::always_inline]] inline const char* frame_at(uintptr_t at) {
  return see_python(PythonAccess::kDirect, at, nullptr, 0);
}
[[gnu::always_inline]] inline bool is_entry(const char* frame) {
  return frame[kLayout.frame_entry] != 0;
}

// Whether `frame` runs this function at this instruction. Nothing that it does not refer to is
// looked at before all in front of it was the same.
[[gnu::always_inline]] inline bool is_function(const PythonRuntime& python, const char* frame,
                                               uint64_t word, PythonFileSeen& last) {
  using format::PythonFrame;
  const auto object = python_field<uintptr_t>(frame, kLayout.frame_code);
  const auto at = static_cast<uintptr_t>(PythonFrame::instruction(word)) * kPythonInstruction;
  const bool entered = (word & WalkDraft::kPythonEntry) == 0;
  if (python_field<uintptr_t>(frame, kLayout.frame_instruction) !=
          object + kLayout.code_instructions + at ||
      entered != is_entry(frame)) {
    return false;
  }
  const auto* const code = reinterpret_cast<const char*>(object);
  const PythonCode& known =
      *internal::python_code.known(PythonFrame::code(word | WalkDraft::kPythonEntry));
  return python_field<uintptr_t>(code, kPythonType) == python.code_type &&
         is_plainly(kLayout, code, known, last);
}

// Whether is_function() can compare each of its functions.
bool has_plain_code(const WalkDraft& draft) {
  const uint64_t* word = draft.python();
  const uint64_t* const end = word + draft.python_count();
  while (word != end) {
    const uint64_t* const stop = word + 1 + (*word >> WalkDraft::kPythonCountShift);
    for (++word; word != stop; ++word) {
      const PythonCode* const code =
          python_code(format::PythonFrame::code(*word | WalkDraft::kPythonEntry));
      if (code == nullptr || !code->is_plain) return false;
    }
  }
  return true;
}

}  // namespace

// `number`: of the signpost, or the other of its two places. C code that one Python line runs may
// allocate by many paths.
uint64_t WalkMemory::python_place(const Area& area, uint64_t number, const Registers& from,
                                  uint64_t header) {
  uint64_t hash = Area::start_of_hash(from.pc + (number | 1), from.sp);
  const char* frame = frame_at(word_at(from, header));
  for (unsigned i = 0; i < kTellingFunctions && frame != nullptr; ++i) {
    hash = (hash ^ python_field<uintptr_t>(frame, kLayout.frame_instruction)) * Area::kSpread;
    if (is_entry(frame)) break;
    frame = frame_at(python_field<uintptr_t>(frame, kLayout.frame_previous));
  }
  return area.place(hash);
}

// The words of the stack are the same, so what they lead to is there, and no signal has come
// between; a handler that comes now may write the record anew.
bool WalkMemory::same_functions(const PythonRuntime& python, const Record& record, uint64_t state,
                                const Registers& from) {
  const StackWord* word = python_words(record) + 1;
  const StackWord* const end = word + (record.shape >> kPythonShift & kPythonCount) - 1;
  PythonFileSeen last = {};
  while (word < end) {
    const uint64_t header = word++->bits();
    compiler_barrier();
    if (load(record.state) != state) return false;
    uintptr_t at = word_at(from, header);
    const StackWord* const stop = word + (header >> WalkDraft::kPythonCountShift);
    for (; word < stop; ++word) {
      const char* const frame = frame_at(at);
      if (frame == nullptr || !is_function(python, frame, word->bits(), last)) return false;
      at = python_field<uintptr_t>(frame, kLayout.frame_previous);
    }
  }
  return true;
}

WalkMemory::Known WalkMemory::through_python(Area& area, uint64_t number, const Registers& from) {
  const PythonRuntime* const python = python_runtime();
  if (python == nullptr || python->is_ending()) return {};
  Known known;
  for (const uint64_t one : {number, number ^ 1}) {
    const Record& post = *area.at(one);
    if (post.pc != (from.pc ^ kSignpost)) continue;
    const uint64_t post_state = load(post.state);
    compiler_barrier();
    const uint64_t header = python_words(post)->bits();
    if (!same<kSignpost>(post, from.pc, from, known) || load(post.state) != post_state) continue;
    const uint64_t place = python_place(area, one, from, header);
    for (const uint64_t other : {place, place ^ 1}) {
      const Record& walk = *area.at(other);
      if (walk.pc != (from.pc ^ kThroughPython)) continue;
      const uint64_t state = load(walk.state);
      compiler_barrier();
      if (python_words(walk)->bits() == post_state &&
          same<kThroughPython>(walk, from.pc, from, known) &&
          same_functions(*python, walk, state, from) && load(walk.state) == state) {
        ++area.hits;
        return known;
      }
    }
  }
  return {};
}

// The state of the signpost for these words of the stack, which is made if there is none. 0: there
// was no room. `first`: one of its places.
uint64_t WalkMemory::signpost(Area& area, uint64_t first, const WalkDraft& draft,
                              const Registers& from) {
  Known known;
  for (const bool made : {false, true}) {
    for (const uint64_t one : {first, first ^ 1}) {
      const Record& post = *area.at(one);
      const uint64_t state = load(post.state);
      if (same<kSignpost>(post, from.pc, from, known) && load(post.state) == state) return state;
    }
    if (made) break;
    write(area, first,
          {draft, from, kSignpost, draft.words(), draft.before_python(), 0, draft.python(), 1, 0,
           nullptr});
  }
  return 0;
}

void WalkMemory::remember_python(Area& area, const WalkDraft& draft, const Registers& from,
                                 uint32_t stack, void* to) {
  if (!has_plain_code(draft)) return;
  learn(area, from, kSignpost, misses_ % 1024 == 0);
  uint64_t words[WalkDraft::kMostPython + 1];
  const uint64_t number = area.place(area.hash_of(from.pc, from.sp));
  words[0] = signpost(area, number, draft, from);
  if (words[0] == 0) return;
  for (unsigned i = 0; i < draft.python_count(); ++i) words[i + 1] = draft.python()[i];
  const unsigned before = std::min(draft.before_python(), draft.count());
  write(area, python_place(area, number, from, draft.python()[0]),
        {draft, from, kThroughPython, draft.words() + before, draft.count() - before,
         draft.beyond(), words, draft.python_count() + 1, stack, to});
}

}  // namespace mtrace::unwind
