// Allocates 1,000 bytes below N frames of recursion and prints "N FRAMES", as backtrace() counts them
// from the caller of malloc on. Given any word, it then kills itself.
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static int frames;

static __attribute__((noinline)) void* leaf(size_t size) {
  void* addresses[512];
  frames = backtrace(addresses, 512);
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
  (void)argv;
  static const int kDepths[] = {0, 1, 4, 5, 20, 60, 110, 200, 300};
  for (size_t i = 0; i < sizeof kDepths / sizeof *kDepths; ++i) {
    left((unsigned)i, kDepths[i], 1000);
    printf("%d %d\n", kDepths[i], frames);
  }
  if (argc > 1) raise(SIGKILL);
  return 0;
}
