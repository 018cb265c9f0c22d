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
// The frame's function and where it is, as a draft keeps it: while no code object is freed there is
// one to which the instruction belongs.
[[gnu::always_inline]] inline uint64_t function_of(const char* frame) {
  const auto entry = static_cast<unsigned char>(frame[kLayout.frame_entry]);
  return python_field<uint64_t>(frame, kLayout.frame_instruction) |
         uint64_t{entry} << WalkDraft::kPythonEntryShift;
}
bool is_entry(uint64_t function) { return function >> WalkDraft::kPythonEntryShift != 0; }

}  // namespace

// `number`: of the signpost, or the other of its two places. C code that one Python line runs may
// allocate by many paths.
uint64_t WalkMemory::python_place(const Area& area, uint64_t number, const Registers& from,
                                  uint64_t header) {
  uint64_t hash = Area::start_of_hash(from.pc + (number | 1), from.sp);
  const char* frame = frame_at(word_at(from, header));
  for (unsigned i = 0; i < kTellingFunctions && frame != nullptr; ++i) {
    const uint64_t function = function_of(frame);
    hash = (hash ^ function) * Area::kSpread;
    if (is_entry(function)) break;
    frame = frame_at(python_field<uintptr_t>(frame, kLayout.frame_previous));
  }
  return area.place(hash);
}

// The words of the stack are the same, so what they lead to is there, and no signal has come
// between; a handler that comes now may write the record anew.
[[gnu::always_inline]] inline bool WalkMemory::same_functions(const Record& record, uint64_t state,
                                                              const Registers& from) {
  const StackWord* word = python_words(record) + kPythonHead;
  const StackWord* const end = python_words(record) + (record.shape >> kPythonShift & kPythonCount);
  while (word < end) {
    const uint64_t header = word++->bits();
    compiler_barrier();
    if (load(record.state) != state) return false;
    uintptr_t at = word_at(from, header);
    const StackWord* const stop = word + (header >> WalkDraft::kPythonCountShift);
    for (; word < stop; ++word) {
      const char* const frame = frame_at(at);
      if (frame == nullptr || function_of(frame) != word->bits()) return false;
      at = python_field<uintptr_t>(frame, kLayout.frame_previous);
    }
  }
  return true;
}

// Whether the record is of the walk beyond the signpost in that state.
[[gnu::always_inline]] inline bool WalkMemory::same_through(const Record& record,
                                                            uint64_t post_state, uint64_t deaths,
                                                            const Registers& from, Known& known) {
  if (record.pc != (from.pc ^ kThroughPython)) return false;
  const uint64_t state = load(record.state);
  compiler_barrier();
  const StackWord* const head = python_words(record);
  // A record that is being written is of no epoch; the signpost's is the present one.
  const uint64_t other = (head[0].bits() ^ post_state) | (head[1].bits() ^ deaths) |
                         (static_cast<uint32_t>(state) ^ static_cast<uint32_t>(post_state));
  return other == 0 && same_words(record, state, from, known) &&
         same_functions(record, state, from) && load(record.state) == state;
}

WalkMemory::Known WalkMemory::through_python(Area& area, uint64_t number, const Registers& from) {
  const PythonRuntime* const python = python_runtime();
  if (python == nullptr || python->is_ending()) return {};
  const uint64_t deaths = code_deaths();
  const Record& post = *area.at(number);
  const uint64_t state = load(post.state);
  compiler_barrier();
  const uint64_t header = python_words(post)->bits();
  Known known;
  if (!same(post, state, from.pc ^ kSignpost, from, known)) return {};
  const Record& lately = *area.at(load(area.lately[number]));
  if (same_through(lately, state, deaths, from, known)) return ++area.hits, known;
  return by_functions(area, number, state, header, deaths, from);
}

// The same, of another walk than the one that was known last beyond this signpost, which is in
// `state` and begins with `header`.
WalkMemory::Known WalkMemory::by_functions(Area& area, uint64_t number, uint64_t state,
                                           uint64_t header, uint64_t deaths,
                                           const Registers& from) {
  Known known;
  const uint64_t place = python_place(area, number, from, header);
  for (const uint64_t one : {place, place ^ 1}) {
    if (!same_through(*area.at(one), state, deaths, from, known)) continue;
    store(area.lately[number], static_cast<uint16_t>(one));
    return ++area.hits, known;
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
      if (same(post, from.pc ^ kSignpost, from, known) && load(post.state) == state) return state;
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
  learn(area, from, kSignpost, misses_ % 1024 == 0);
  uint64_t words[WalkDraft::kMostPython + kPythonHead];
  const uint64_t number = area.place(area.hash_of(from.pc, from.sp));
  words[0] = signpost(area, number, draft, from);
  if (words[0] == 0) return;
  words[1] = draft.code_deaths();
  std::copy_n(draft.python(), draft.python_count(), words + kPythonHead);
  const unsigned before = std::min(draft.before_python(), draft.count());
  write(area, python_place(area, number, from, draft.python()[0]),
        {draft, from, kThroughPython, draft.words() + before, draft.count() - before,
         draft.beyond(), words, draft.python_count() + kPythonHead, stack, to});
}

}  // namespace mtrace::unwind
