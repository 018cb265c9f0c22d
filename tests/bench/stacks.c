// stacks COUNT: keeps a block of each of COUNT stacks (to 65,536), says "ready", then allocates and
// frees with one of them at each byte of input, until its end. For tests/bench/bench_serve.py.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NEST __attribute__((noipa))

enum { kDepth = 8 };  // calls, of one of four functions each

// Two bits of `path` are a call.
static void* next(unsigned path, unsigned depth, size_t size);

#define FUNCTION(name)                                                 \
  NEST static void* name(unsigned path, unsigned depth, size_t size) { \
    void* block = next(path, depth, size);                             \
    __asm__ volatile("# " #name ::: "memory");                         \
    return block;                                                      \
  }
FUNCTION(north)
FUNCTION(east)
FUNCTION(south)
FUNCTION(west)

static void* next(unsigned path, unsigned depth, size_t size) {
  static void* (*const kFunctions[])(unsigned, unsigned, size_t) = {north, east, south, west};
  if (depth == 0) return malloc(size);
  return kFunctions[path & 3](path >> 2, depth - 1, size);
}

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
  void** kept = calloc(count, sizeof *kept);
  for (unsigned i = 0; i < count; ++i) kept[i] = next(i, kDepth, 16 + i % 500);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  char byte;
  for (unsigned i = 0; read(STDIN_FILENO, &byte, 1) == 1; ++i) {
    free(kept[i % count]);
    kept[i % count] = next(i % count, kDepth, 16 + i % 700);
  }
  return 0;
}
