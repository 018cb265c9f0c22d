#include "unwind/module_entry.h"

#include <string.h>

#include "base/probe.h"
#include "base/syscall.h"
#include "format/memlog.h"
#include "unwind/jit_names.h"
#include "unwind/module_memory.h"
#include "unwind/module_path.h"
#include "unwind/python_runtime.h"

namespace mtrace::unwind {
namespace {

bool same_place(const Object& then, const Object& now) {
  return now.base == then.base && now.eh_frame_hdr == then.eh_frame_hdr &&
         now.start >= then.start && now.end <= then.end;
}

}  // namespace

Entry* make_entry(const Object& object) {
  auto* scratch = static_cast<PathScratch*>(sys::map_memory(sizeof(PathScratch)));
  if (scratch == nullptr) return nullptr;
  find_path(object, scratch);
  const size_t length = strlen(scratch->path);
  auto* copy = static_cast<char*>(module_memory(length + 1));
  if (copy != nullptr) memcpy(copy, scratch->path, length + 1);
  sys::unmap_memory(scratch, sizeof(PathScratch));
  auto* entry = static_cast<Entry*>(module_memory(sizeof(Entry)));
  if (copy == nullptr || entry == nullptr) return nullptr;
  entry->object = object;
  entry->object.python = find_python(object);
  note_jit_descriptor(object);
  entry->announced.store(0, std::memory_order_relaxed);
  Module& module = entry->module;
  module.start = object.start;
  module.end = object.end;
  module.base = object.base;
  module.path = copy;
  module.build_id_size = 0;
  if (object.build_id_size != 0 &&
      sys::read_memory(object.build_id, module.build_id, object.build_id_size)) {
    module.build_id_size = object.build_id_size;
  }
  module.identity = module.build_id_size != 0
                        ? format::module_identity(module.build_id, module.build_id_size)
                        : format::module_identity(copy, length);
  module.died = kAlive;
  return entry;
}

bool set_died(Entry* entry, uint32_t from, uint32_t to) {
  const bool set = __atomic_compare_exchange_n(&entry->module.died, &from, to, false,
                                               __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
  if (set) log_death(entry->logged, entry->module);
  return set;
}

bool same_file(const Module& a, const Module& b) {
  return strcmp(a.path, b.path) == 0 && a.build_id_size == b.build_id_size &&
         memcmp(a.build_id, b.build_id, a.build_id_size) == 0;
}

bool same_object(const Entry& entry, const Object& now) {
  const Object& then = entry.object;
  if (!same_place(then, now)) return false;
  if (then.build_id_size != 0) {
    return memcmp(reinterpret_cast<const void*>(then.build_id), entry.module.build_id,
                  then.build_id_size) == 0;
  }
  return now.name == 0 || same_name(reinterpret_cast<const char*>(now.name), entry.module.path);
}

bool still_loaded(const Entry& entry) {
  const Object& then = entry.object;
  Object now;
  if (!locate_object(then.start, &now) || !same_place(then, now)) return false;
  if (then.build_id_size != 0) {
    unsigned char bytes[sizeof entry.module.build_id];
    return sys::read_memory(then.build_id, bytes, then.build_id_size) &&
           memcmp(bytes, entry.module.build_id, then.build_id_size) == 0;
  }
  char name[256];
  return !sys::read_string(now.name, name, sizeof name) || same_name(name, entry.module.path);
}

}  // namespace mtrace::unwind
