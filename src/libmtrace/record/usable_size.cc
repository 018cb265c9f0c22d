// glibc keeps the size of a block's chunk, with three flags in its lowest bits, in the word below
// the block (malloc/malloc.c, "malloc_chunk"). Reading it costs a fifth of a call of
// malloc_usable_size(). The library does not assume this layout: for the first blocks it compares
// the word with malloc_usable_size(), and after one difference uses only the call.
#include "record/usable_size.h"

#include <cstdint>
#include <cstring>

#include "base/atomic.h"
#include "ledger/block.h"
#include "next/next_functions.h"
#include "record/recorder.h"

namespace mtrace::record {
namespace internal {

MTRACE_HOT constinit bool g_size_is_below = false;

}  // namespace internal

namespace {

constexpr uint32_t kTrials = 64;
uint32_t g_agreed = 0;
bool g_differed = false;

// Compares a result of malloc_usable_size() with the word below the block.
void compare(void* block, size_t usable) {
  if (load(g_differed) || load(internal::g_size_is_below)) return;
  const size_t word = load(static_cast<const size_t*>(block)[-1]);
  if ((word & internal::kChunkMapped) != 0) return;
  if ((word & ~internal::kChunkFlags) - sizeof word != usable) return store(g_differed, true);
  if (fetch_add(g_agreed, 1u) >= kTrials) store(internal::g_size_is_below, true);
}

}  // namespace

namespace internal {

size_t ask_for_usable_size(void* block) {
  // malloc_usable_size() may allocate (tcmalloc, the first time): no query for that block in turn.
  if (next::g_next.usable_size == nullptr || t_thread.asking) return 0;
  t_thread.asking = true;
  compiler_barrier();
  const size_t usable = next::g_next.usable_size(block);
  compiler_barrier();
  t_thread.asking = false;
  if (next::allocator_is_libc()) compare(block, usable);
  return usable;
}

uint64_t ask_for_slack(void* block, uint64_t size) {
  const size_t usable = ask_for_usable_size(block);
  return usable < size ? 0 : usable - size;
}

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

}  // namespace internal

void always_ask_for_usable_size() {
  store(g_differed, true);
  store(internal::g_size_is_below, false);
}

}  // namespace mtrace::record
