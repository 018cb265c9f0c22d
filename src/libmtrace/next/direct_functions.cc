#include "next/direct_functions.h"

#include <errno.h>

#include <cstring>

#include "base/machine.h"
#include "modules/linkage.h"

namespace mtrace::hook {
namespace {

// musl maps each larger block by itself, with every allocator that it has had.
constexpr size_t kMostOnHeap = 0x1c00 * 4 * sizeof(size_t);

void* allocate_zeroed(size_t count, size_t size) {
  size_t product;
  if (__builtin_mul_overflow(count, size, &product)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const block = g_next.malloc(product);
  if (block != nullptr && product <= kMostOnHeap) memset(block, 0, product);
  return block;
}

void* allocate_aligned(size_t alignment, size_t size) {
  return g_next.aligned_alloc(alignment, size);
}

int allocate_aligned_into(void** result, size_t alignment, size_t size) {
  if (alignment < sizeof(void*)) return EINVAL;
  void* const block = g_next.aligned_alloc(alignment, size);
  if (block == nullptr) return errno;
  *result = block;
  return 0;
}

void* allocate_page_aligned(size_t size) {
  return g_next.aligned_alloc(machine::page_bytes(), size);
}

template <typename Function>
const link_map* definer(Function* function) {
  return unwind::object_of(reinterpret_cast<const void*>(function));
}

}  // namespace

void lead_past_hooks(NextFunctions& found) {
  const link_map* const libc = definer(found.exit_now);
  const auto is_libcs = [=](auto* function) {
    return function != nullptr && definer(function) == libc;
  };
  if (is_libcs(found.malloc) && is_libcs(found.calloc)) found.calloc = allocate_zeroed;
  if (!is_libcs(found.aligned_alloc)) return;
  if (is_libcs(found.memalign)) found.memalign = allocate_aligned;
  if (is_libcs(found.posix_memalign)) found.posix_memalign = allocate_aligned_into;
  if (is_libcs(found.valloc)) found.valloc = allocate_page_aligned;
}

}  // namespace mtrace::hook
