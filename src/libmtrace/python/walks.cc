// Known walks through Python's evaluation loop: besides the words of the stack, the functions that
// the loop runs must be those that it ran when the walk was remembered.
#include <algorithm>

#include "python/runtime.h"
#include "python/text.h"
#include "unwind/walk_memory.h"

namespace mtrace::unwind {
namespace {

using Known = WalkMemory::Known;

constexpr unsigned kHashedFunctions = 3;

// The layout of CPython 3.11, whose fields are constants where a function is given it and inlined:
// each known walk reads all of them.
constexpr const PythonLayout& kLayout311 = kPythonLayouts[0];
static_assert(kLayout311.version == 0x030b);

bool is_by_state(const PythonLayout& layout) { return layout.state_frame != 0; }

// The frame of the innermost function; 0: not known.
[[gnu::always_inline]] inline uintptr_t word_at(const PythonLayout& layout, const Registers& from,
                                                uint64_t header) {
  const auto distance = static_cast<uint32_t>(header);
  if (!is_by_state(layout) || distance != WalkDraft::kThreadState) {
    return reinterpret_cast<const uintptr_t*>(from.sp)[distance];
  }
  const PythonRuntime* const python = python_runtime();
  const uintptr_t place = python == nullptr ? 0 : place_in_thread_state(*python);
  return place == 0 ? 0 : *reinterpret_cast<const uintptr_t*>(place);
}

// The frame at `at`; nullptr: not an address of one.
[[gnu::always_inline]] inline const char* frame_at(uintptr_t at) {
  return see_python(PythonAccess::kDirect, at, nullptr, 0);
}
// The frame's instruction and entry byte, as a draft keeps them: while no code object is freed the
// instruction belongs to one function.
[[gnu::always_inline]] inline uint64_t function_of(const PythonLayout& layout, const char* frame) {
  return python_field<uint64_t>(frame, layout.frame_instruction) |
         uint64_t{static_cast<uint8_t>(frame[layout.frame_entry])} << WalkDraft::kPythonEntryShift;
}

// Hash of the walk beyond a signpost, also by the signpost's own `hash`: C code that one Python
// line runs may allocate by many paths.
[[gnu::always_inline]] inline uint64_t python_hash(const PythonLayout& layout, uint64_t hash,
                                                   const Registers& from, uint64_t header) {
  hash = WalkArea::start_of_hash(is_by_state(layout) ? hash ^ from.sp : hash);
  const char* frame = frame_at(word_at(layout, from, header));
  for (unsigned i = 0; i < kHashedFunctions && frame != nullptr; ++i) {
    const uint64_t function = function_of(layout, frame);
    hash = WalkArea::add_to_hash(hash, function);
    if (function >> WalkDraft::kPythonEntryShift == layout.entry_mark) break;
    frame = frame_at(python_field<uintptr_t>(frame, layout.frame_previous));
  }
  return hash;
}

// Whether the functions are those of the record. The stack words are, so the frames exist and no
// signal has come between; a handler that comes now may write the record anew.
[[gnu::always_inline]] inline bool same_functions(const PythonLayout& layout,
                                                  const WalkRecord& record, uint64_t state,
                                                  const Registers& from) {
  const StackWord* word = record.python_words() + WalkRecord::kPythonHead;
  const StackWord* const end =
      record.python_words() + (record.shape >> WalkRecord::kPythonShift & WalkRecord::kPythonCount);
  while (word < end) {
    const uint64_t header = word++->bits();
    compiler_barrier();
    if (load(record.state) != state) return false;
    uintptr_t at = word_at(layout, from, header);
    const StackWord* const stop = word + (header >> WalkDraft::kPythonCountShift);
    for (; word < stop; ++word) {
      const char* const frame = frame_at(at);
      if (frame == nullptr || function_of(layout, frame) != word->bits()) return false;
      at = python_field<uintptr_t>(frame, layout.frame_previous);
    }
  }
  return true;
}

// Whether the record is of the walk beyond the signpost in state `post_state`.
[[gnu::always_inline]] inline bool same_through(const PythonLayout& layout,
                                                const WalkRecord& record, uint64_t post_state,
                                                const Registers& from, Known& known) {
  if (record.pc != (from.pc ^ WalkRecord::kThroughPython)) return false;
  // The thread state may be another one whose loop is elsewhere on the stack.
  if (is_by_state(layout) && record.sp != from.sp) return false;
  const uint64_t state = load(record.state);
  compiler_barrier();
  const StackWord* const head = record.python_words();
  // A record that is being written is of no epoch; the signpost's is the present one.
  const uint64_t other = (head[0].bits() ^ post_state) | (head[1].bits() ^ code_deaths()) |
                         (static_cast<uint32_t>(state) ^ static_cast<uint32_t>(post_state));
  return other == 0 && record.same_words(state, from, known) &&
         same_functions(layout, record, state, from) && load(record.state) == state;
}

// Finds another walk than the last one known beyond this signpost, which is in `state` and begins
// with `header`.
template <bool kIs311>
[[gnu::noinline]] Known by_functions(const PythonLayout& any, WalkArea& area, uint64_t post,
                                     uint64_t state, uint64_t header, const Registers& from) {
  const PythonLayout& layout = kIs311 ? kLayout311 : any;
  Known known;
  const uint64_t hash = python_hash(layout, area.hash_of(from.pc, from.sp), from, header);
  for (const uint64_t one : {area.place(hash), area.second_place(hash)}) {
    if (!same_through(layout, *area.at(one), state, from, known)) continue;
    store(area.lately[post], static_cast<uint16_t>(one));
    return ++area.hits, known;
  }
  return {};
}

template <bool kIs311>
[[gnu::always_inline]] inline Known through(const PythonLayout& any, WalkArea& area, uint64_t post,
                                            const Registers& from) {
  const PythonLayout& layout = kIs311 ? kLayout311 : any;
  const WalkRecord& record = *area.at(post);
  const uint64_t state = load(record.state);
  compiler_barrier();
  const uint64_t header = record.python_words()->bits();
  Known known;
  if (!record.same(state, from.pc ^ WalkRecord::kSignpost, from, known)) return {};
  const WalkRecord& lately = *area.at(load(area.lately[post]));
  if (same_through(layout, lately, state, from, known)) return ++area.hits, known;
  return by_functions<kIs311>(layout, area, post, state, header, from);
}

[[gnu::noinline]] Known through_other(const PythonLayout& layout, WalkArea& area, uint64_t post,
                                      const Registers& from) {
  return through<false>(layout, area, post, from);
}

// The state of the signpost for these words of the stack; makes it if there is no such signpost
// yet. 0: no room.
uint64_t signpost(WalkArea& area, const WalkDraft& draft, const Registers& from) {
  constexpr uintptr_t kSignpost = WalkRecord::kSignpost;
  Known known;
  for (const bool made : {false, true}) {
    const uint64_t hash = area.hash_of(from.pc, from.sp);
    for (const uint64_t one : {area.place(hash), area.second_place(hash)}) {
      const WalkRecord& post = *area.at(one);
      const uint64_t state = load(post.state);
      compiler_barrier();
      if (post.same(state, from.pc ^ kSignpost, from, known)) return state;
    }
    if (made) break;
    const WalkDraft::Part part = draft.before_python();
    area.learn(draft, part, from.pc, kSignpost);
    area.write(area.hash_of(from.pc, from.sp), from.pc ^ kSignpost, draft, part, draft.python(), 1,
               {});
  }
  return 0;
}

}  // namespace

Known WalkArea::through_python(uint64_t post, const Registers& from) {
  const PythonRuntime* const python = python_runtime();
  if (python == nullptr || python->is_ending()) return {};
  if (python->layout != &kLayout311) [[unlikely]]
    return through_other(*python->layout, *this, post, from);
  return through<true>(kLayout311, *this, post, from);
}

void WalkArea::remember_python(const WalkDraft& draft, uintptr_t pc, const Known& to) {
  constexpr unsigned kHead = WalkRecord::kPythonHead;
  const Registers from = {pc, draft.from().sp, draft.from().fp};
  const PythonRuntime* const python = python_runtime();
  if (python == nullptr) return;
  uint64_t words[WalkDraft::kMostPython + kHead];
  words[0] = signpost(*this, draft, from);
  if (words[0] == 0) return;
  words[1] = draft.code_deaths();
  std::copy_n(draft.python(), draft.python_count(), words + kHead);
  const uint64_t hash = hash_of(from.pc, from.sp);
  write(python_hash(*python->layout, hash, from, draft.python()[0]),
        pc ^ WalkRecord::kThroughPython, draft, draft.from_python(), words,
        draft.python_count() + kHead, to);
}

}  // namespace mtrace::unwind
