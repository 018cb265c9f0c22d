#include "next/direct_functions.h"

#include <errno.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/machine.h"
#include "modules/linkage.h"

namespace mtrace::hook {
namespace {

bool is_zero(const char* bytes, size_t size) {
  uint64_t word = 0;
  while (word == 0 && size >= sizeof word) {
    memcpy(&word, bytes, sizeof word);
    bytes += sizeof word;
    size -= sizeof word;
  }
  while (word == 0 && size > 0) word = static_cast<unsigned char>(bytes[--size]);
  return word == 0;
}

// Writes only to pages that are not zero, so that memory which was never used takes none.
void make_zero(char* block, size_t size) {
  constexpr size_t kPage = 4096;
  while (size > 0) {
    const size_t in_page = kPage - (reinterpret_cast<uintptr_t>(block) & (kPage - 1));
    const size_t part = std::min(size, in_page);
    if (!is_zero(block, part)) memset(block, 0, part);
    block += part;
    size -= part;
  }
}

void* allocate_zeroed(size_t count, size_t size) {
  size_t product;
  if (__builtin_mul_overflow(count, size, &product)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const block = g_next.malloc(product);
  if (block != nullptr) make_zero(static_cast<char*>(block), product);
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
