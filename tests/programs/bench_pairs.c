// bench_pairs PAIRS [THREADS]: malloc+free pairs, made 12 calls deep; prints nanoseconds a pair.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__clang__)
#define NEST __attribute__((noinline))
#else
#define NEST __attribute__((noipa))
#endif
static long pairs;

// The innermost of the twelve; main or the thread's start routine is above the outermost.
static NEST void level_12(long n) {
  for (long i = 0; i < n; ++i) {
    void* volatile p = malloc((size_t)(16 + i % 512));
    free(p);
  }
}
#define LEVEL(outer, inner)            \
  static NEST void outer(long n) {     \
    inner(n);                          \
    __asm__ volatile("" ::: "memory"); \
  }
LEVEL(level_11, level_12)
LEVEL(level_10, level_11)
LEVEL(level_9, level_10)
LEVEL(level_8, level_9)
LEVEL(level_7, level_8)
LEVEL(level_6, level_7)
LEVEL(level_5, level_6)
LEVEL(level_4, level_5)
LEVEL(level_3, level_4)
LEVEL(level_2, level_3)
LEVEL(level_1, level_2)

static void* work(void* unused) {
  level_1(pairs);
  return unused;
}

int main(int argc, char** argv) {
  pairs = argc > 1 ? atol(argv[1]) : 1000000;
  const int threads = argc > 2 ? atoi(argv[2]) : 1;
  struct timespec begin;
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  if (threads <= 1) {
    level_1(pairs);
  } else {
    pthread_t list[64];
    for (int i = 0; i < threads && i < 64; ++i) pthread_create(&list[i], NULL, work, NULL);
    for (int i = 0; i < threads && i < 64; ++i) pthread_join(list[i], NULL);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double nanoseconds =
      (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
  printf("%.2f\n", nanoseconds / (double)pairs);
  return 0;
}
