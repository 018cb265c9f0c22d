// cut_stacks: allocates below N frames of recursion and prints "N FRAMES", as backtrace() counts
// them from the caller of malloc on. cut_stacks PATHS: 20 frames deep, on so many different ways
// (up to 512).
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

static int frames;

static __attribute__((noinline)) void* leaf(size_t size) {
  void* addresses[512];
  if (size > 1) frames = backtrace(addresses, 512);
  void* const block = malloc(size);
  __asm__ volatile("" ::: "memory");
  return block;
}

// Bit N of the path decides on the N-th of the innermost frames.
static void* turn(unsigned path, int more, size_t size);

static __attribute__((noinline)) void* left(unsigned path, int more, size_t size) {
  void* const block = turn(path, more, size);
  __asm__ volatile("" ::: "memory");
  return block;
}

static __attribute__((noinline)) void* right(unsigned path, int more, size_t size) {
  void* const block = turn(path, more, size);
  __asm__ volatile("" ::: "memory");
  return block;
}

static inline __attribute__((always_inline)) void* turn(unsigned path, int more, size_t size) {
  if (more == 0) return leaf(size);
  return (path >> (more - 1) % 32) % 2 == 0 ? left(path, more - 1, size)
                                            : right(path, more - 1, size);
}

int main(int argc, char** argv) {
  static const int kDepths[] = {0, 1, 4, 5, 20, 60, 110, 200};
  // The first walks of a thread are not remembered, and stacks not counted.
  for (unsigned path = 0; path < 16; ++path) free(left(path, 2, 0));
  if (argc > 1) {
    for (unsigned path = 0; path < (unsigned)atoi(argv[1]); ++path) left(path, 19, 1);
    return 0;
  }
  for (size_t i = 0; i < sizeof kDepths / sizeof *kDepths; ++i) {
    left((unsigned)i, kDepths[i], 1000);
    printf("%d %d\n", kDepths[i], frames);
  }
  return 0;
}
