#include "hook/fill.h"

#include <cstdint>
#include <cstring>

#include "hook/real.h"
#include "hook/tracker.h"

namespace mtrace::hook {
namespace {

// 0: not known, or under way: an allocator may allocate to answer.
size_t usable_size(void* block) {
  if (g_real.usable_size == nullptr || t_thread.asking) return 0;
  t_thread.asking = true;
  compiler_barrier();
  const size_t usable = g_real.usable_size(block);
  compiler_barrier();
  t_thread.asking = false;
  return usable;
}

}  // namespace

void fill(void* block, size_t from, size_t size) {
  const size_t usable = usable_size(block);
  // An allocator that rounded a huge request past zero returned less than was asked for.
  if (usable != 0 || size > ledger::kMostBytes) size = usable;
  if (from < size) memset(static_cast<char*>(block) + from, g_fill, size - from);
}

size_t content_of(void* block, size_t requested) {
  const size_t usable = usable_size(block);
  if (usable != 0) return usable;
  return requested != 0 ? requested : SIZE_MAX;
}

}  // namespace mtrace::hook
