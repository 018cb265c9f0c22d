// A library to preload behind libmtrace.so: its indirect function runs before there is an allocator
// and takes more than the library can have ready. It gets nothing in the end, as from an allocator
// that has no more.
#include <stdlib.h>

namespace {
constexpr unsigned kBlocks = 200;
void* blocks[kBlocks];
int good() { return 42; }
}  // namespace

extern "C" {
using Answer = int (*)();
Answer choose_hungrily() {
  for (unsigned i = 0; i < kBlocks; ++i) {
    void* block = i % 2 == 0 ? malloc(1024) : calloc(1, 1024);
    if (i % 10 == 9) {
      free(block);
      block = nullptr;
    }
    blocks[i] = block;
  }
  return good;
}
__attribute__((visibility("default"), ifunc("choose_hungrily"))) int hungry_answer();
__attribute__((visibility("default"))) void** hungry_blocks(unsigned* count) {
  *count = hungry_answer() == 42 ? kBlocks : 0;
  return blocks;
}
}
