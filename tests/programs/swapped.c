// A thread allocates and another one frees, and allocates again at the same address, which the
// first one then frees: site_first and site_second, blocks of 100 and of 1,000 bytes. Prints how
// often the address was the same.
#include "truth.h"

enum { kTurns = 200 };
static pthread_barrier_t turn;
static void* volatile block;
static int same;

GIVES(first, (size_t size), malloc(size))
GIVES(second, (size_t size), malloc(size))

static size_t size_of(int i) { return i % 2 == 0 ? 100 : 1000; }

static void* other(void* unused) {
  for (int i = 0; i < kTurns; ++i) {
    pthread_barrier_wait(&turn);
    void* const first = block;
    free(first);
    block = site_second(size_of(i));
    same += block == first;
    pthread_barrier_wait(&turn);
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_barrier_init(&turn, NULL, 2);
  pthread_create(&thread, NULL, other, NULL);
  for (int i = 0; i < kTurns; ++i) {
    block = site_first(size_of(i));
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    free(block);
  }
  pthread_join(thread, NULL);
  printf("%d\n", same);
  return 0;
}
