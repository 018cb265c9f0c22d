#include "python/runtime.h"

#include <string.h>

#include <algorithm>

#include "base/table_file.h"
#include "cfi/row.h"
#include "modules/linkage.h"
#include "modules/module_entry.h"
#include "unwind/rule_cache.h"

namespace mtrace::unwind {
namespace internal {
const PythonRuntime* python = nullptr;
PythonFrames python_frames = PythonFrames::kTried;
uint64_t code_deaths = 0;
}  // namespace internal

namespace {

using format::PythonGap;

template <typename T>
bool read_in(const modules::Object& object, uintptr_t address, T* to) {
  if (!object.bounds.contains(address, sizeof *to)) return false;
  memcpy(to, reinterpret_cast<const void*>(address), sizeof *to);
  return true;
}

// Whether code objects are as large as the layout says.
bool fits_type(const modules::Object& object, const PythonRuntime& found) {
  uint64_t size = 0;
  return read_in(object, found.code_type + kPythonTypeBasicSize, &size) &&
         size == found.layout->code_instructions;
}

// Sets the layout, or the gap: why the layout is not known.
void find_layout(const modules::Object& object, PythonRuntime* found) {
  constexpr uint32_t kExporting = 0x030d;
  uint64_t words[kPythonExportedWords];
  for (const PythonLayout& layout : kPythonLayouts) {
    if (layout.version == found->version >> 16) found->layout = &layout;
  }
  if (found->version >> 16 == kExporting) {
    found->gap = PythonGap::kOffsets;
    if (read_in(object, found->runtime, &words) &&
        exported_layout(words, found->version, &found->exported)) {
      found->layout = &found->exported;
    }
  }
  if (found->layout == nullptr) return;
  const bool fits = fits_type(object, *found);
  found->gap = fits ? PythonGap::kNone : PythonGap::kOffsets;
  if (!fits) found->layout = nullptr;
}

// Target of the jump at `at`; 0: no jump. Only near ones lead out of so large a function.
uintptr_t jump_target(uintptr_t at, uintptr_t end) {
  unsigned char code[6] = {};
  memcpy(code, reinterpret_cast<const void*>(at), end - at < sizeof code ? end - at : sizeof code);
  const bool conditional = code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
  if (!conditional && code[0] != 0xe9) return 0;
  const unsigned size = conditional ? 6 : 5;
  int32_t distance;
  memcpy(&distance, code + size - sizeof distance, sizeof distance);
  return at + size + static_cast<uintptr_t>(intptr_t{distance});
}

// Finds the unlikely part of the loop, which compilers move away, under no symbol that a stripped
// file keeps. Jumps show it: they lead out of the function into the middle of code with its own
// FDE. Bytes that only look like a jump lead anywhere.
PythonRuntime::Part moved_part(const modules::Object& object, const PythonRuntime::Part& loop) {
  constexpr unsigned kCandidates = 8;
  constexpr unsigned kLeast = 3;
  struct {
    PythonRuntime::Part part;
    unsigned jumps;
  } found[kCandidates] = {};
  for (uintptr_t at = loop.begin; at < loop.end; ++at) {
    const uintptr_t target = jump_target(at, loop.end);
    if (target < object.start || target >= object.end) continue;
    if (target >= loop.begin && target < loop.end) continue;
    for (auto& candidate : found) {
      cfi::Fde fde;
      if (candidate.jumps == 0 && cfi::find_fde(object.bounds, object.eh_frame_hdr, target, &fde) &&
          fde.pc_begin != target) {
        candidate = {{fde.pc_begin, fde.pc_end}, 1};
        break;
      }
      if (candidate.jumps == 0) break;
      if (target >= candidate.part.begin && target < candidate.part.end) {
        ++candidate.jumps;
        break;
      }
    }
  }
  unsigned most = 0;
  for (unsigned i = 1; i < kCandidates; ++i) {
    if (found[i].jumps > found[most].jumps) most = i;
  }
  return found[most].jumps >= kLeast ? found[most].part : PythonRuntime::Part{};
}

CodeFree find_code_free(const modules::Object& object, uintptr_t code_type) {
  const uintptr_t word = code_type + kPythonTypeFree;
  uintptr_t function = 0;
  if (word % sizeof word != 0 || !read_in(object, word, &function)) return {};
  if (function < object.start || function >= object.end) return {};
  return {reinterpret_cast<uintptr_t*>(word), function};
}

}  // namespace

const PythonRuntime* find_python(const modules::Object& object) {
  modules::FoundObject listed;
  // A segment's start, as the headers of an object at address 0 may not be mapped.
  if (!modules::find_object(object.start, &listed)) return nullptr;
  const link_map& map = *listed.map;
  const auto address_of = [&](const char* name) {
    const Elf64_Sym* const symbol = modules::find_definition(map, name);
    return symbol == nullptr ? 0 : modules::address_of(map, *symbol);
  };
  const Elf64_Sym* const loop = modules::find_function(map, "_PyEval_EvalFrameDefault");
  if (loop == nullptr) return nullptr;
  const uintptr_t begin = modules::address_of(map, *loop);
  const PythonRuntime::Part part = {begin, begin + loop->st_size};
  if (!object.bounds.contains(begin, loop->st_size)) return nullptr;
  auto* found = static_cast<PythonRuntime*>(modules::module_memory(sizeof(PythonRuntime)));
  if (found == nullptr) return nullptr;
  found->base = object.base;
  found->loop[0] = part;
  found->image = {object.start, object.end};
  found->gap = PythonGap::kVersion;
  // Before 3.11 no version is exported.
  uint64_t number = 0;
  read_in(object, address_of("Py_Version"), &number);
  found->version = static_cast<uint32_t>(number);
  found->runtime = address_of("_PyRuntime");
  found->code_type = address_of("PyCode_Type");
  if (found->runtime == 0 || found->code_type == 0) return found;
  find_layout(object, found);
  if (found->layout == nullptr) return found;
  found->loop[1] = moved_part(object, part);
  found->code_free = find_code_free(object, found->code_type);
  return found;
}

namespace {

using Free = void (*)(void*);
uintptr_t g_free = 0;

// Counts before the memory is used again. The last call is a jump, so that it is in no walk.
void free_code(void* code) {
  fetch_add<uint64_t>(internal::code_deaths, 1);
  reinterpret_cast<Free>(load_acquire(g_free))(code);
}

// Begins to count freed code objects. Once for an interpreter that is loaded.
void watch_code(const CodeFree& free) {
  if (free.word == nullptr) return;
  store_release(g_free, free.function);
  uintptr_t expected = free.function;
  // A thread that has read the old word may free an object uncounted: no stack runs that object.
  if (compare_exchange(*free.word, expected, reinterpret_cast<uintptr_t>(free_code))) {
    fetch_add<uint64_t>(internal::code_deaths, 1);
  }
}

// True: from here on `found` is python_runtime(), unless Python frames are off. False: another one
// is, and still loaded, or `found` is not covered.
bool use_python(const PythonRuntime& found) {
  if (found.gap != PythonGap::kNone) {
    note_python_gap(found.gap, found);
    return false;
  }
  const bool tried = found.layout->is_tried;
  if (!tried && load(internal::python_frames) != PythonFrames::kUntried) {
    note_python_gap(PythonGap::kUntried, found);
    return false;
  }
  const PythonRuntime* known = load_acquire(internal::python);
  if (known == &found) return true;
  modules::Object now;
  if (known != nullptr && modules::locate_object(known->loop[0].begin, &now) &&
      now.base == known->base) {
    note_python_gap(PythonGap::kSecond, found);
    return false;
  }
  if (!compare_exchange(internal::python, known, &found)) return known == &found;
  if (!tried) note_python_gap(PythonGap::kOnTrial, found);
  watch_code(found.code_free);
  return true;
}

}  // namespace

bool is_python_loop(const modules::Object& object, uintptr_t address) {
  const PythonRuntime* const python = object.python;
  return python != nullptr && !python_frames_are_off() && python->is_in_loop(address) &&
         use_python(*python);
}

void read_python_frames(PythonFrames which) {
  // Cached rules carry the mark of Python frames.
  if (load(internal::python_frames) == which) return;
  store(internal::python_frames, which);
  forget_rules(0, kKeyEnd);
}

const format::PythonCoverage& python_coverage() { return base::g_table_header->python; }

void note_python_gap(PythonGap gap, const PythonRuntime& python) {
  format::PythonCoverage& coverage = base::g_table_header->python;
  PythonGap none = PythonGap::kNone;
  if (!compare_exchange(coverage.gap, none, PythonGap::kBeingNoted)) return;
  store(coverage.version, python.version);
  store(coverage.loop, python.loop[0].begin);
  store_release(coverage.gap, gap);
}

namespace {

// Numbers of the words of _Py_DebugOffsets in CPython 3.13.
enum Word : unsigned {
  kCookie = 0,
  kVersion = 1,
  kFreeThreaded = 2,
  kFinalizing = 4,
  kStateFrame = 23,
  kFramePrevious = 29,
  kFrameExecutable = 30,
  kFrameInstruction = 31,
  kFrameOwner = 33,
  kCodeFile = 35,
  kCodeQualifiedName = 37,
  kCodeLineTable = 38,
  kCodeFirstLine = 39,
  kCodeInstructions = 43,
  kObjectType = 45,
  kBytesSize = 65,
  kBytesData = 66,
  kTextState = 68,
  kTextLength = 69,
  kTextHead = 70,
};
static_assert(kTextHead < kPythonExportedWords);

constexpr uint64_t kCookieText = 0x7970677562656478u;  // "xdebugpy"
constexpr uint32_t kExportingVersion = 0x030d;
constexpr uint8_t kOwnedByCStack = 3;      // FRAME_OWNED_BY_CSTACK
constexpr unsigned kTextBeyondAscii = 16;  // PyCompactUnicodeObject has two more words

// Copies offsets, each of which must name a place of `size` bytes below `most`.
class Taker {
 public:
  explicit Taker(const uint64_t* words) : words_(words) {}
  void take(Word which, uint64_t size, uint64_t most, uint16_t* to) {
    const uint64_t offset = words_[which];
    fits_ = fits_ && most >= size && offset <= most - size && offset % (size < 8 ? size : 8) == 0;
    *to = static_cast<uint16_t>(offset);
  }
  void expect(Word which, uint64_t value) { fits_ = fits_ && words_[which] == value; }
  bool fits() const { return fits_; }

 private:
  const uint64_t* const words_;
  bool fits_ = true;
};

}  // namespace

bool exported_layout(const uint64_t* words, uint32_t version, PythonLayout* layout) {
  constexpr uint64_t kMostState = 60'000;  // what 16 bits hold
  Taker taker(words);
  taker.expect(kCookie, kCookieText);
  taker.expect(kVersion, version);
  taker.expect(kFreeThreaded, 0);
  taker.expect(kObjectType, kPythonType);
  taker.expect(kBytesSize, kPythonSize);
  taker.expect(kBytesData, kPythonBytes);
  taker.expect(kTextState, kPythonTextState);
  taker.expect(kTextLength, kPythonSize);
  *layout = {};
  layout->version = version >> 16;
  layout->is_tried = true;
  layout->entry_mark = kOwnedByCStack;
  layout->entry_is_empty = true;
  taker.take(kFinalizing, 8, kMostState, &layout->finalizing);
  taker.take(kStateFrame, 8, kMostState, &layout->state_frame);
  taker.take(kFrameExecutable, 8, kPythonMostFrame, &layout->frame_code);
  taker.take(kFramePrevious, 8, kPythonMostFrame, &layout->frame_previous);
  taker.take(kFrameInstruction, 8, kPythonMostFrame, &layout->frame_instruction);
  taker.take(kFrameOwner, 1, kPythonMostFrame, &layout->frame_entry);
  for (const uint16_t last :
       {layout->frame_code, layout->frame_previous, layout->frame_instruction}) {
    layout->frame_bytes = std::max<uint16_t>(layout->frame_bytes, last + 8);
  }
  layout->frame_bytes = std::max<uint16_t>(layout->frame_bytes, layout->frame_entry + 1);
  taker.take(kCodeInstructions, 8, kPythonMostCode + 8, &layout->code_instructions);
  taker.take(kCodeFirstLine, 4, layout->code_instructions, &layout->code_first_line);
  taker.take(kCodeFile, 8, layout->code_instructions, &layout->code_file);
  taker.take(kCodeQualifiedName, 8, layout->code_instructions, &layout->code_name);
  taker.take(kCodeLineTable, 8, layout->code_instructions, &layout->code_table);
  taker.take(kTextHead, 8, kMostState, &layout->text_ascii);
  layout->text_other = static_cast<uint16_t>(layout->text_ascii + kTextBeyondAscii);
  return taker.fits() && layout->version == kExportingVersion;
}

}  // namespace mtrace::unwind
