#include "record/fill.h"

#include <cstdint>
#include <cstring>

#include "ledger/block_table.h"
#include "record/usable_size.h"

namespace mtrace::hook {

void fill(void* block, size_t from, size_t size) {
  const size_t usable = usable_size(block);
  // An allocator that rounded a huge request past zero returned less than was requested.
  if (usable != 0 || size > ledger::kMostBytes) size = usable;
  if (from < size) memset(static_cast<char*>(block) + from, g_fill, size - from);
}

size_t content_of(void* block, size_t requested) {
  const size_t usable = usable_size(block);
  if (usable != 0) return usable;
  return requested != 0 ? requested : SIZE_MAX;
}

}  // namespace mtrace::hook
