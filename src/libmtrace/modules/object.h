// One loaded object: its segments, its call-frame information, its build-id and its path.
// All functions are async-signal-safe and take no lock.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/probe.h"
#include "cfi/cursor.h"
#include "modules/modules.h"

namespace mtrace::modules {
struct Object;
}

namespace mtrace::unwind {
struct PythonRuntime;
// The Python interpreter that `object` contains; nullptr: none. `object` has been inspected. 100 ns
// for an object without one. Defined in python/runtime.cc.
const PythonRuntime* find_python(const modules::Object& object);
}  // namespace mtrace::unwind

namespace mtrace::modules {

struct Object {
  uintptr_t start = 0;  // mapped range [start, end); with holes: see locate_object
  uintptr_t end = 0;
  uintptr_t base = 0;          // load bias
  uintptr_t name = 0;          // the loader's name for it, a string that is not ours
  uintptr_t eh_frame_hdr = 0;  // 0: has none
  uintptr_t build_id = 0;      // where the raw bytes are mapped, inside `bounds`
  uint32_t build_id_size = 0;  // 0: has none; at most sizeof(Module::build_id)
  cfi::Bounds bounds;          // readable PT_LOAD segments; empty when the headers are not mapped
  const unwind::PythonRuntime* python =
      nullptr;  // the interpreter in it; only in an entry of the list
};

// What the loader knows of an object. Its range is as in Object.
struct FoundObject {
  uintptr_t start;
  uintptr_t end;
  uintptr_t eh_frame_hdr;
  const link_map* map;
};
// Looks up the loaded object that holds `address`. Takes no lock of the loader's, either.
bool find_object(uintptr_t address, FoundObject* found);
// The same before glibc 2.35, which has no function for it: reads the list of the program's own
// namespace, as it is in memory. False also while another thread changes the list. Never faults.
bool find_object_in_list(uintptr_t address, FoundObject* found);

// Looks up the object at `address` with the loader; false when none holds it. Cheap: only the range
// (of an object with holes between its segments: of this segment), base, name and eh_frame_hdr are
// filled in.
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

inline constexpr size_t kMaxPath = 4096;

// Buffers of find_path(), too large for a small stack.
struct PathScratch {
  char name[kMaxPath];
  char path[kMaxPath];
};

// Writes the absolute path of a loaded object, made from the loader's name for it, to
// scratch->path; "?" when it is unknown. Relative names are taken from the present working
// directory. Never faults.
void find_path(const Object& object, PathScratch* scratch);

// Whether the loader's name of an object is the one that `path` was made from.
bool same_name(const char* name, const char* path);

// Reads small tables of an object that may go away meanwhile, mostly by one system call for 512
// bytes.
class ProbedMemory {
 public:
  bool read(uintptr_t from, void* to, size_t bytes) {
    if (!has(from, bytes)) {
      start_ = base::read_memory(from, held_, sizeof held_) ? from : 0;
      // The memory behind the table may not be mapped.
      if (!has(from, bytes)) return base::read_memory(from, to, bytes);
    }
    memcpy(to, held_ + (from - start_), bytes);
    return true;
  }

 private:
  bool has(uintptr_t from, size_t bytes) const {
    return start_ != 0 && bytes <= sizeof held_ && from - start_ <= sizeof held_ - bytes;
  }
  uintptr_t start_ = 0;  // of what held_ is a copy of; 0: nothing
  char held_[512];
};

}  // namespace mtrace::modules
