#include "modules/module_entry.h"

#include <string.h>

#include "base/atomic.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "format/memlog.h"

namespace mtrace::modules {
namespace {

constexpr size_t kChunk = 64 * 1024;

std::atomic<uintptr_t> chunk{0};  // position of the next free byte, 0 or a multiple of kChunk: none

bool same_place(const Object& then, const Object& now) {
  return now.base == then.base && now.eh_frame_hdr == then.eh_frame_hdr &&
         now.start >= then.start && now.end <= then.end;
}

bool is_in_place(const Entry& entry, Object* now) {
  return locate_object(entry.object.start, now) && same_place(entry.object, *now);
}

bool has_same_id(const Entry& entry, const Object& now) {
  const Object& then = entry.object;
  if (then.build_id_size != 0) {
    unsigned char bytes[sizeof entry.module.build_id];
    return base::read_memory(then.build_id, bytes, then.build_id_size) &&
           memcmp(bytes, entry.module.build_id, then.build_id_size) == 0;
  }
  char name[256];
  return !base::read_string(now.name, name, sizeof name) || same_name(name, entry.module.path);
}

bool is_that_file(Entry& entry, const Object& now) {
  if (!has_same_id(entry, now)) return false;
  entry.name.store(now.name, std::memory_order_relaxed);
  return true;
}

}  // namespace

void* module_memory(size_t size) {
  size = (size + 15) & ~size_t{15};
  for (;;) {
    uintptr_t at = chunk.load(std::memory_order_relaxed);
    if (at % kChunk != 0 && kChunk - at % kChunk >= size) {
      if (chunk.compare_exchange_weak(at, at + size, std::memory_order_relaxed)) {
        return reinterpret_cast<void*>(at);
      }
      continue;
    }
    // Twice the size, so that a chunk on its own boundary is inside; untouched pages are free.
    void* memory = base::map_memory(2 * kChunk);
    if (memory == nullptr) return nullptr;
    const uintptr_t start = (reinterpret_cast<uintptr_t>(memory) + kChunk - 1) & ~(kChunk - 1);
    // 16 bytes stay unused: a position on the boundary means that the chunk is full.
    if (!chunk.compare_exchange_strong(at, start + 16, std::memory_order_relaxed)) {
      base::unmap_memory(memory, 2 * kChunk);
    }
  }
}

Entry* make_entry(const Object& object) {
  auto* scratch = static_cast<PathScratch*>(base::map_memory(sizeof(PathScratch)));
  if (scratch == nullptr) return nullptr;
  find_path(object, scratch);
  const size_t length = strlen(scratch->path);
  auto* copy = static_cast<char*>(module_memory(length + 1));
  if (copy != nullptr) memcpy(copy, scratch->path, length + 1);
  base::unmap_memory(scratch, sizeof(PathScratch));
  auto* entry = static_cast<Entry*>(module_memory(sizeof(Entry)));
  if (copy == nullptr || entry == nullptr) return nullptr;
  entry->object = object;
  entry->name.store(object.name, std::memory_order_relaxed);
  entry->path_number = format::fnv1a(copy, length);
  entry->object.python = unwind::find_python(object);
  entry->announced.store(0, std::memory_order_relaxed);
  Module& module = entry->module;
  module.start = object.start;
  module.end = object.end;
  module.base = object.base;
  module.path = copy;
  module.build_id_size = 0;
  if (object.build_id_size != 0 &&
      base::read_memory(object.build_id, module.build_id, object.build_id_size)) {
    module.build_id_size = object.build_id_size;
  }
  module.identity = module.build_id_size != 0
                        ? format::module_identity(module.build_id, module.build_id_size)
                        : format::module_identity(copy, length);
  module.died = kAlive;
  return entry;
}

Entry* make_entry_again(const Entry& known, const Object& now) {
  // A relative name may be that of a copy in another directory.
  const auto* const name = reinterpret_cast<const char*>(now.name);
  if (name == nullptr || strcmp(name, known.module.path) != 0) return nullptr;
  if (known.object.build_id_size == 0) return nullptr;
  auto* entry = static_cast<Entry*>(module_memory(sizeof(Entry)));
  if (entry == nullptr) return nullptr;
  entry->module = known.module;
  entry->module.died = kAlive;
  entry->object = known.object;
  entry->object.name = now.name;
  entry->path_number = known.path_number;
  entry->name.store(now.name, std::memory_order_relaxed);
  entry->announced.store(0, std::memory_order_relaxed);
  entry->logged.store(nullptr, std::memory_order_relaxed);
  return entry;
}

bool set_died(Entry* entry, uint32_t from, uint32_t to) {
  const bool set = __atomic_compare_exchange_n(&entry->module.died, &from, to, false,
                                               __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
  if (set) log_death(entry->logged, entry->module);
  return set;
}

bool same_file(const Module& a, const Module& b) {
  return a.identity == b.identity && strcmp(a.path, b.path) == 0 &&
         a.build_id_size == b.build_id_size && memcmp(a.build_id, b.build_id, a.build_id_size) == 0;
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

bool still_loaded(Entry& entry) {
  Object now;
  return is_in_place(entry, &now) && is_that_file(entry, now);
}

bool seems_loaded(Entry& entry) {
  Object now;
  if (!is_in_place(entry, &now)) return false;
  return entry.name.load(std::memory_order_relaxed) == now.name || is_that_file(entry, now);
}

format::LedgerModule* log_module(const Module& module, uint32_t number) {
  format::LedgerHeader* header = base::g_table_header;
  if (!base::has_table_file()) return nullptr;
  const size_t length = strlen(module.path);
  base::TableTurn turn;
  auto* logged =
      static_cast<format::LedgerModule*>(turn.grow_little(sizeof(format::LedgerModule) + length));
  if (logged == nullptr) return nullptr;
  static_assert(sizeof logged->build_id == sizeof module.build_id &&
                format::kLedgerAlive == kAlive);
  logged->start = module.start;
  logged->end = module.end;
  logged->base = module.base;
  logged->generation = module.generation;
  logged->build_id_size = module.build_id_size;
  memcpy(logged->build_id, module.build_id, sizeof logged->build_id);
  logged->born = module.born;
  logged->died = module.died;
  logged->number = number;
  logged->path_length = static_cast<uint32_t>(length);
  memcpy(logged + 1, module.path, length);
  logged->next = load(header->first_module);
  store_release(header->first_module, reinterpret_cast<uint64_t>(logged));
  return logged;
}

void log_death(const std::atomic<format::LedgerModule*>& logged, const Module& module) {
  format::LedgerModule* known = logged.load();
  if (known != nullptr) store_release(known->died, load_acquire(module.died));
}

}  // namespace mtrace::modules
