#include "modules/module_log.h"

#include <string.h>

#include "base/atomic.h"
#include "base/table_file.h"

namespace mtrace::unwind {

format::LedgerModule* log_module(const Module& module, uint32_t number) {
  format::LedgerHeader* header = sys::g_table_header;
  if (header == nullptr) return nullptr;
  const size_t length = strlen(module.path);
  sys::TableTurn turn;
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

}  // namespace mtrace::unwind
