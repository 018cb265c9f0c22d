#include "unwind/python_runtime.h"

#include <string.h>

#include "unwind/eh_frame.h"
#include "unwind/exported_symbol.h"
#include "unwind/module_memory.h"
#include "unwind/rule_cache.h"

namespace mtrace::unwind {
namespace internal {
const PythonRuntime* python = nullptr;
bool python_is_off = false;
}  // namespace internal

namespace {

// Address of the interpreter, and its PythonGap in the lowest bits.
uintptr_t g_gap = 0;
constexpr uintptr_t kGapBits = 3;

const PythonLayout* layout_of(uint32_t version) {
  for (const PythonLayout& layout : kPythonLayouts) {
    if (layout.version == version >> 16) return &layout;
  }
  return nullptr;
}

// Where the jump at `at` leads, 0: there is none. Only near ones lead out of so large a function.
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

// Compilers move what is unlikely away, under no symbol that a stripped file keeps. The jumps tell:
// they lead out of the function into the middle of something that has call-frame information of
// its own. Bytes that only look like a jump lead anywhere.
PythonRuntime::Part moved_part(const Object& object, const PythonRuntime::Part& loop) {
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
      Fde fde;
      if (candidate.jumps == 0 && find_fde(object, target, &fde) && fde.pc_begin != target) {
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

}  // namespace

const PythonRuntime* find_python(const Object& object) {
  ExportedSymbol loop;
  ExportedSymbol version;
  ExportedSymbol runtime;
  ExportedSymbol code_type;
  if (!find_exported(object, "_PyEval_EvalFrameDefault", &loop)) return nullptr;
  const PythonRuntime::Part part = {loop.address, loop.address + loop.size};
  if (!object.bounds.contains(loop.address, loop.size)) return nullptr;
  auto* found = static_cast<PythonRuntime*>(module_memory(sizeof(PythonRuntime)));
  if (found == nullptr) return nullptr;
  found->base = object.base;
  found->loop[0] = part;
  // Before 3.11 no version is exported.
  uint64_t number = 0;
  if (find_exported(object, "Py_Version", &version) &&
      object.bounds.contains(version.address, sizeof number)) {
    memcpy(&number, reinterpret_cast<const void*>(version.address), sizeof number);
  }
  found->version = static_cast<uint32_t>(number);
  if (!find_exported(object, "_PyRuntime", &runtime) ||
      !find_exported(object, "PyCode_Type", &code_type)) {
    return found;
  }
  found->runtime = runtime.address;
  found->code_type = code_type.address;
  found->layout = layout_of(found->version);
  if (found->layout == nullptr) return found;
  found->loop[1] = moved_part(object, part);
  found->code_free = find_code_free(object, code_type.address);
  return found;
}

bool use_python(const PythonRuntime& found) {
  if (found.layout == nullptr) {
    note_python_gap(PythonGap::kVersion, found);
    return false;
  }
  const PythonRuntime* known = load_acquire(internal::python);
  if (known == &found) return true;
  Object now;
  if (known != nullptr && locate_object(known->loop[0].begin, &now) && now.base == known->base) {
    note_python_gap(PythonGap::kSecond, found);
    return false;
  }
  if (!compare_exchange(internal::python, known, &found)) return known == &found;
  watch_code(found.code_free);
  return true;
}

void read_python_frames(bool on) {
  // Rules say whether their frames are to be looked into.
  if (exchange(internal::python_is_off, !on) == on) forget_rules();
}

PythonCoverage python_coverage() {
  const uintptr_t gap = load_acquire(g_gap);
  return {static_cast<PythonGap>(gap & kGapBits),
          reinterpret_cast<const PythonRuntime*>(gap & ~kGapBits)};
}

void note_python_gap(PythonGap gap, const PythonRuntime& python) {
  static_assert(alignof(PythonRuntime) > kGapBits);
  uintptr_t none = 0;
  compare_exchange(g_gap, none, reinterpret_cast<uintptr_t>(&python) | static_cast<uintptr_t>(gap));
}

}  // namespace mtrace::unwind
