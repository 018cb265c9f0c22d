// grows MIBS [THREADS]: threads hold so much between them, block by block of 64 KiB in step, touch
// all of it, free it, and hold half of it again.
#include "truth.h"

enum { kBlock = 64 * 1024, kMost = 64 };

static int blocks;  // of a thread
static pthread_barrier_t step;

static void* work(void* unused) {
  char** const all = malloc((size_t)blocks * sizeof *all);
  for (int count = blocks; count >= blocks / 2; count -= blocks / 2) {
    for (int i = 0; i < count; ++i) {
      pthread_barrier_wait(&step);
      memset(all[i] = malloc(kBlock), 1, kBlock);
    }
    pthread_barrier_wait(&step);
    for (int i = 0; i < count; ++i) free(all[i]);
  }
  free(all);
  return unused;
}

int main(int argc, char** argv) {
  pthread_t threads[kMost];
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  if (argc < 2 || count > kMost) return 2;
  blocks = atoi(argv[1]) * 16 / (count == 0 ? 1 : count);
  pthread_barrier_init(&step, NULL, count == 0 ? 1 : (unsigned)count);
  for (int i = 0; i < count; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  if (count == 0) work(NULL);
  return 0;
}
