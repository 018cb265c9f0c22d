// Known walks through Python's evaluation loop: besides the words of the stack, the functions that
// the loop runs must be those that it ran when the walk was remembered.
#include <algorithm>

#include "python/frames.h"
#include "unwind/walk_memory.h"

namespace mtrace::unwind {
namespace {

constexpr unsigned kHashedFunctions = 3;

// The fields of a layout that walks need. Constants where possible, because each known walk reads
// all of them.
struct Fields311 {
  static constexpr const PythonLayout& kLayout = kPythonLayouts[0];
  static_assert(kLayout.version == 0x030b);
  static constexpr unsigned instruction = kLayout.frame_instruction;
  static constexpr unsigned previous = kLayout.frame_previous;
  static constexpr bool from_state = kLayout.state_frame != 0;
  explicit Fields311(const PythonLayout&) {}
  static bool are_of(const PythonLayout& layout) { return &layout == &kLayout; }
  // 1: the loop was entered with the frame, otherwise 0: a bool of the interpreter's.
  static uint64_t entry(const char* frame) {
    static_assert(kLayout.entry_mark == 1);
    return static_cast<uint8_t>(frame[kLayout.frame_entry]);
  }
};
struct FieldsRead {
  const unsigned entry_at;
  const unsigned mark;
  const unsigned instruction;
  const unsigned previous;
  const bool from_state;
  explicit FieldsRead(const PythonLayout& layout)
      : entry_at(layout.frame_entry),
        mark(layout.entry_mark),
        instruction(layout.frame_instruction),
        previous(layout.frame_previous),
        from_state(layout.state_frame != 0) {}
  uint64_t entry(const char* frame) const {
    return static_cast<uint8_t>(frame[entry_at]) == mark ? 1 : 0;
  }
};

// The frame of the innermost function, 0: there is none.
template <typename Fields>
[[gnu::always_inline]] inline uintptr_t word_at(const Fields& fields, const Registers& from,
                                                uint64_t header) {
  const auto distance = static_cast<uint32_t>(header);
  if (!fields.from_state || distance != WalkDraft::kThreadState) {
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
// The frame's instruction and entry bit, as a draft keeps them: while no code object is freed the
// instruction belongs to one function.
template <typename Fields>
[[gnu::always_inline]] inline uint64_t function_of(const Fields& fields, const char* frame) {
  return python_field<uint64_t>(frame, fields.instruction) | fields.entry(frame)
                                                                 << WalkDraft::kPythonEntryShift;
}
bool is_entry(uint64_t function) { return function >> WalkDraft::kPythonEntryShift != 0; }

}  // namespace

// Hash of the walk beyond a signpost, also by the signpost's own `hash`: C code that one Python
// line runs may allocate by many paths.
template <typename Fields>
uint64_t WalkMemory::python_hash(const Fields& fields, uint64_t hash, const Registers& from,
                                 uint64_t header) {
  hash = Area::start_of_hash(fields.from_state ? hash ^ from.sp : hash);
  const char* frame = frame_at(word_at(fields, from, header));
  for (unsigned i = 0; i < kHashedFunctions && frame != nullptr; ++i) {
    const uint64_t function = function_of(fields, frame);
    hash = Area::add_to_hash(hash, function);
    if (is_entry(function)) break;
    frame = frame_at(python_field<uintptr_t>(frame, fields.previous));
  }
  return hash;
}

// Whether the functions are those of the record. The stack words are, so the frames exist and no
// signal has come between; a handler that comes now may write the record anew.
template <typename Fields>
[[gnu::always_inline]] inline bool WalkMemory::same_functions(const Fields& fields,
                                                              const Record& record, uint64_t state,
                                                              const Registers& from) {
  const StackWord* word = python_words(record) + kPythonHead;
  const StackWord* const end = python_words(record) + (record.shape >> kPythonShift & kPythonCount);
  while (word < end) {
    const uint64_t header = word++->bits();
    compiler_barrier();
    if (load(record.state) != state) return false;
    uintptr_t at = word_at(fields, from, header);
    const StackWord* const stop = word + (header >> WalkDraft::kPythonCountShift);
    for (; word < stop; ++word) {
      const char* const frame = frame_at(at);
      if (frame == nullptr || function_of(fields, frame) != word->bits()) return false;
      at = python_field<uintptr_t>(frame, fields.previous);
    }
  }
  return true;
}

// Whether the record is of the walk beyond the signpost in state `post_state`.
template <typename Fields>
[[gnu::always_inline]] inline bool WalkMemory::same_through(const Fields& fields,
                                                            const Record& record,
                                                            uint64_t post_state, uint64_t deaths,
                                                            const Registers& from, Known& known) {
  if (record.pc != (from.pc ^ kThroughPython)) return false;
  // The thread state may be another one whose loop is elsewhere on the stack.
  if (fields.from_state && record.sp != from.sp) return false;
  const uint64_t state = load(record.state);
  compiler_barrier();
  const StackWord* const head = python_words(record);
  // A record that is being written is of no epoch; the signpost's is the present one.
  const uint64_t other = (head[0].bits() ^ post_state) | (head[1].bits() ^ deaths) |
                         (static_cast<uint32_t>(state) ^ static_cast<uint32_t>(post_state));
  return other == 0 && same_words(record, state, from, known) &&
         same_functions(fields, record, state, from) && load(record.state) == state;
}

template <typename Fields>
[[gnu::always_inline]] inline WalkMemory::Known WalkMemory::through_python(const Fields& fields,
                                                                           Area& area,
                                                                           uint64_t number,
                                                                           const Registers& from) {
  const uint64_t deaths = code_deaths();
  const Record& post = *area.at(number);
  const uint64_t state = load(post.state);
  compiler_barrier();
  const uint64_t header = python_words(post)->bits();
  Known known;
  if (!same(post, state, from.pc ^ kSignpost, from, known)) return {};
  const Record& lately = *area.at(load(area.lately[number]));
  if (same_through(fields, lately, state, deaths, from, known)) return ++area.hits, known;
  return by_functions(fields, area, number, state, header, deaths, from);
}

// Finds another walk than the last one known beyond this signpost, which is in `state` and begins
// with `header`.
template <typename Fields>
[[gnu::noinline]] WalkMemory::Known WalkMemory::by_functions(const Fields& fields, Area& area,
                                                             uint64_t number, uint64_t state,
                                                             uint64_t header, uint64_t deaths,
                                                             const Registers& from) {
  Known known;
  const uint64_t hash = python_hash(fields, area.hash_of(from.pc, from.sp), from, header);
  for (const uint64_t one : {area.place(hash), area.second_place(hash)}) {
    if (!same_through(fields, *area.at(one), state, deaths, from, known)) continue;
    store(area.lately[number], static_cast<uint16_t>(one));
    return ++area.hits, known;
  }
  return {};
}

[[gnu::noinline]] WalkMemory::Known WalkMemory::through_read_python(const PythonLayout& layout,
                                                                    Area& area, uint64_t number,
                                                                    const Registers& from) {
  return through_python(FieldsRead(layout), area, number, from);
}

WalkMemory::Known WalkMemory::through_python(Area& area, uint64_t number, const Registers& from) {
  const PythonRuntime* const python = python_runtime();
  if (python == nullptr || python->is_ending()) return {};
  const PythonLayout& layout = *python->layout;
  if (!Fields311::are_of(layout)) [[unlikely]] {
    return through_read_python(layout, area, number, from);
  }
  return through_python(Fields311(layout), area, number, from);
}

// The state of the signpost for these words of the stack; makes it if there is none. 0: no room.
uint64_t WalkMemory::signpost(Area& area, const WalkDraft& draft, const Registers& from) {
  Known known;
  for (const bool made : {false, true}) {
    const uint64_t hash = area.hash_of(from.pc, from.sp);
    for (const uint64_t one : {area.place(hash), area.second_place(hash)}) {
      const Record& post = *area.at(one);
      const uint64_t state = load(post.state);
      compiler_barrier();
      if (same(post, state, from.pc ^ kSignpost, from, known)) return state;
    }
    if (made) break;
    learn(area, draft, draft.before_python(), draft.saved_before_python(), from.pc, kSignpost);
    write(area, area.hash_of(from.pc, from.sp),
          {draft, from.pc ^ kSignpost, 0, draft.before_python(), 0, draft.saved_before_python(), 0,
           draft.python(), 1, 0, nullptr});
  }
  return 0;
}

void WalkMemory::remember_python(Area& area, const WalkDraft& draft, uintptr_t pc, uint32_t stack,
                                 void* to) {
  const Registers from = {pc, draft.from().sp, draft.from().fp};
  const PythonRuntime* const python = python_runtime();
  if (python == nullptr) return;
  uint64_t words[WalkDraft::kMostPython + kPythonHead];
  words[0] = signpost(area, draft, from);
  if (words[0] == 0) return;
  words[1] = draft.code_deaths();
  std::copy_n(draft.python(), draft.python_count(), words + kPythonHead);
  const uint64_t hash = area.hash_of(from.pc, from.sp);
  write(area, python_hash(FieldsRead(*python->layout), hash, from, draft.python()[0]),
        {draft, pc ^ kThroughPython, draft.before_python(), draft.count(),
         draft.saved_before_python(), draft.saved_count(), draft.beyond(), words,
         draft.python_count() + kPythonHead, stack, to});
}

}  // namespace mtrace::unwind
