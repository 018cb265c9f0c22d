// One loaded object as the parser of its call-frame information needs it.
#pragma once

#include <link.h>

#include <cstdint>

#include "cfi/bounds.h"
#include "modules/modules.h"

namespace mtrace::unwind {

struct PythonRuntime;

struct Object {
  uintptr_t start = 0;  // mapped range [start, end); with holes: see locate_object
  uintptr_t end = 0;
  uintptr_t base = 0;          // load bias
  uintptr_t name = 0;          // the loader's name for it, a string that is not ours
  uintptr_t eh_frame_hdr = 0;  // 0: has none
  uintptr_t build_id = 0;      // where the raw bytes are mapped, inside `bounds`
  uint32_t build_id_size = 0;  // 0: has none; at most sizeof(Module::build_id)
  Bounds bounds;               // readable PT_LOAD segments; empty when the headers are not mapped
  const PythonRuntime* python = nullptr;  // the interpreter in it; only in an entry of the list
};

// What the loader knows of an object. Its range is as in Object.
struct FoundObject {
  uintptr_t start;
  uintptr_t end;
  uintptr_t eh_frame_hdr;
  const link_map* map;
};
// Looks up the loaded object that holds `address`. Takes no lock of the loader's;
// async-signal-safe.
bool find_object(uintptr_t address, FoundObject* found);
// The same before glibc 2.35, which has no function for it: reads the list of the program's own
// namespace, as it is in memory. False also while another thread changes the list. Never faults.
bool find_object_in_list(uintptr_t address, FoundObject* found);

// Looks up the object at `address` with the loader; false when none holds it. Cheap: only the range
// (of an object with holes between its segments: of this segment), base, name and eh_frame_hdr are
// filled in. Lock-free, async-signal-safe.
bool locate_object(uintptr_t address, Object* object);

// Fills in the rest from the program headers, as they are mapped, and widens the range to all
// segments. Makes system calls; never faults.
void inspect_object(Object* object);

// Whether this is the dynamic loader. Its only code that calls and has no call-frame information is
// its entry, _dl_start_user, which is the outermost frame.
bool is_loader(const Object& object);

// The object that holds `address`, registered in the list of modules if it was not yet;
// `*scratch`, filled in, when the list is full; nullptr when no loaded object holds it.
const Object* loaded_object(uintptr_t address, Object* scratch);

}  // namespace mtrace::unwind
