// A library to preload behind libmtrace.so: it is relocated first, so its indirect function maps
// memory through a libmtrace.so in which nothing that needs relocation works yet.
#include <sys/mman.h>
#include <unistd.h>

namespace {
void* early_memory;
bool early_failure;

int good() { return 42; }
int bad() { return 0; }
}  // namespace

extern "C" {
using Answer = int (*)();

Answer choose() {
  early_memory = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (early_memory == MAP_FAILED) return bad;
  *static_cast<char*>(early_memory) = 7;
  early_memory = mremap(early_memory, 8192, 4096, 0);
  early_failure = mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
  return *static_cast<char*>(early_memory) == 7 ? good : bad;
}
__attribute__((visibility("default"), ifunc("choose"))) int indirect_answer();
}

__attribute__((constructor)) static void early() {
  if (indirect_answer() != 42 || !early_failure || munmap(early_memory, 4096) != 0) _exit(88);
}
