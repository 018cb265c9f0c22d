// src/base/syscall.cc for ThreadSanitizer: by libc's functions, which it watches. Of raw system
// calls it does not learn that memory was given back, and takes what the next user of the same
// addresses does for a race with the last one.
#include <sys/mman.h>

#include "base/syscall.h"

namespace mtrace::base {

void* map_memory(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}
void* map_sparse_memory(size_t bytes) { return map_memory(bytes); }
void unmap_memory(void* memory, size_t bytes) { munmap(memory, bytes); }
bool give_back(void* memory, size_t bytes) { return madvise(memory, bytes, MADV_DONTNEED) == 0; }

}  // namespace mtrace::base
