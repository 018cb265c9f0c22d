// Walks through Python's evaluation loop that need not be gone again: besides the words of the
// stack the functions have to be the same that the loop ran then.
#include "unwind/python_frames.h"
#include "unwind/walk_memory.h"

namespace mtrace::unwind {
namespace {

constexpr auto kDirect = PythonAccess::kDirect;
constexpr unsigned kTellingFunctions = 3;

uintptr_t word_at(const Registers& from, uint64_t header) {
  const auto distance = static_cast<uint32_t>(header);
  return reinterpret_cast<const uintptr_t*>(from.sp)[distance];
}

// One for all walks that are remembered, so that its offsets are constants.
static_assert(sizeof kPythonLayouts == sizeof(PythonLayout));
constexpr const PythonLayout& kLayout = kPythonLayouts[0];

// Whether the function that `step` runs is this one.
[[gnu::always_inline]] inline bool is_function(const PythonRuntime& python, const PythonStep& step,
                                               uint64_t word, PythonFileSeen& last) {
  using format::PythonFrame;
  const bool entry = (word & WalkDraft::kPythonEntry) == 0;
  const uint64_t frame = word | WalkDraft::kPythonEntry;
  const auto* const object = reinterpret_cast<const char*>(step.code);
  const PythonCode* const code = internal::python_code.find(PythonFrame::code(frame));
  return entry == step.entry && code != nullptr &&
         instruction_of(kLayout, step) == PythonFrame::instruction(frame) &&
         python_field<uintptr_t>(object, kPythonType) == python.code_type &&
         is_plainly(kLayout, object, *code, last);
}

}  // namespace

uint64_t WalkMemory::python_place(const Area& area, const Registers& from, uint64_t header) {
  uint64_t hash = Area::start_of_hash(from.pc, from.sp);
  uintptr_t at = word_at(from, header);
  PythonStep step;
  for (unsigned i = 0; i < kTellingFunctions; ++i) {
    if (!read_python_step(kLayout, kDirect, at, &step)) break;
    hash = (hash ^ step.instruction) * Area::kSpread;
    if (step.entry) break;
    at = step.previous;
  }
  return area.place(hash);
}

// The words of the stack are the same, so what they lead to is there, and no signal has come
// between; a handler that comes now may write the record anew.
bool WalkMemory::same_functions(const Record& record, uint64_t state, const Registers& from) {
  const PythonRuntime& python = *python_runtime();
  const StackWord* word = record.words + (record.shape & kCount);
  const StackWord* const end = word + (record.shape >> kPythonShift & kPythonCount);
  PythonFileSeen last = {};
  while (word < end) {
    const uint64_t header = word++->bits();
    compiler_barrier();
    if (load(record.state) != state) return false;
    uintptr_t at = word_at(from, header);
    const StackWord* const stop = word + (header >> WalkDraft::kPythonCountShift);
    for (; word < stop; ++word) {
      PythonStep step;
      if (!read_python_step(kLayout, kDirect, at, &step) ||
          !is_function(python, step, word->bits(), last)) {
        return false;
      }
      at = step.previous;
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
    const uint64_t state = load(post.state);
    compiler_barrier();
    const uint64_t header = post.words[post.shape & kCount].bits();
    if (!same<kSignpost>(post, from.pc, from, known) || load(post.state) != state) continue;
    const uint64_t place = python_place(area, from, header);
    for (const uint64_t other : {place, place ^ 1}) {
      const Record& walk = *area.at(other);
      if (walk.pc != (from.pc ^ kThroughPython)) continue;
      const uint64_t before = load(walk.state);
      if (same<kThroughPython>(walk, from.pc, from, known) && same_functions(walk, before, from) &&
          load(walk.state) == before) {
        ++area.hits;
        return known;
      }
    }
  }
  return {};
}

void WalkMemory::remember_python(Area& area, const Content& walk) {
  const Registers& from = walk.from;
  Known known;
  learn(area, from, kSignpost, misses_ % 1024 == 0);
  const uint64_t first = area.place(area.hash_of(from.pc, from.sp));
  const uint64_t header = walk.python[0];
  if (!same<kSignpost>(*area.at(first), from.pc, from, known) &&
      !same<kSignpost>(*area.at(first ^ 1), from.pc, from, known)) {
    write(area, first,
          {walk.draft, from, kSignpost, walk.draft.before_python(), 0, 1, &header, 0, nullptr});
  }
  write(area, python_place(area, from, header), walk);
}

}  // namespace mtrace::unwind
