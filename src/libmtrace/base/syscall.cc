#include "base/syscall.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/own_memory.h"

namespace mtrace::base {

void* map_memory(size_t bytes) {
  const long result = map_own(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (failed(result)) return nullptr;
  add_own_range(static_cast<uintptr_t>(result), bytes);
  return reinterpret_cast<void*>(result);
}

unsigned long address_space_limit() {
  rlimit64 limit = {RLIM64_INFINITY, RLIM64_INFINITY};
  call(SYS_prlimit64, 0, RLIMIT_AS, nullptr, &limit);
  return limit.rlim_cur;
}

void unmap_memory(void* memory, size_t bytes) {
  remove_own_range(reinterpret_cast<uintptr_t>(memory));
  call(SYS_munmap, memory, bytes);
}

void* map_sparse_memory(size_t bytes) {
  void* memory = map_memory(bytes);
  if (memory != nullptr) call(SYS_madvise, memory, bytes, MADV_NOHUGEPAGE);
  return memory;
}

bool give_back(void* memory, size_t bytes) {
  return call(SYS_madvise, memory, bytes, MADV_DONTNEED) == 0;
}

}  // namespace mtrace::base
