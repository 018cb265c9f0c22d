// Fragments its heap as argument 1 says, and prints how much that adds to its resident memory, KiB:
// "live peak N", "end N", "trimmed N"; and the time that it took, "ns N".
//   one       one thread allocates blocks of many sizes, and frees nine of ten
//   threads   two threads, one after the other, allocate many blocks and free all but the last
//   families  one block of each function that allocates
#include <malloc.h>
#include <stdint.h>
#include <time.h>

#include "truth.h"

#define BLOCKS 40000

static char* blocks[2][BLOCKS];
static long live_peak;
static pthread_barrier_t first_done, both_done;

// Does not allocate.
static long resident(void) {
  static char text[8192];
  const int file = open("/proc/self/smaps_rollup", O_RDONLY);
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  text[got < 0 ? 0 : got] = '\0';
  const char* found = strstr(text, "\nRss:");
  return found == NULL ? 0 : strtol(found + 5, NULL, 10);
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void* filled(void* block, size_t size) {
  memset(block, 1, size);
  return block;
}

static void one(void) {
  uint64_t state = 7;
  for (int i = 0; i < BLOCKS; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const size_t size = 1 + (state >> 33) % 1500;
    blocks[0][i] = filled(malloc(size), size);
    if (i % 7 == 0) blocks[0][i] = filled(realloc(blocks[0][i], 2 * size), 2 * size);
  }
  live_peak = resident();
  for (int i = 0; i < BLOCKS; ++i) {
    if (i % 10 != 0) free(blocks[0][i]);
  }
}

static void fill_and_free(char** mine) {
  for (int i = 0; i < BLOCKS; ++i) mine[i] = filled(malloc(400), 400);
  live_peak = resident();
  for (int i = 0; i < BLOCKS - 1; ++i) free(mine[i]);
}
static void* first(void* none) {
  (void)none;
  fill_and_free(blocks[0]);
  pthread_barrier_wait(&first_done);
  pthread_barrier_wait(&both_done);
  return NULL;
}
static void* second(void* none) {
  (void)none;
  pthread_barrier_wait(&first_done);
  fill_and_free(blocks[1]);
  pthread_barrier_wait(&both_done);
  return NULL;
}

static void families(void) {
  void* aligned = NULL;
  blocks[0][0] = malloc(100);
  blocks[0][1] = calloc(10, 20);
  blocks[0][2] = memalign(256, 300);
  if (posix_memalign(&aligned, 4096, 5000) == 0) blocks[0][3] = aligned;
  blocks[0][4] = realloc(NULL, 50);
  blocks[0][4] = realloc(blocks[0][4], 7000);
  blocks[0][5] = malloc(64);
  if (realloc(blocks[0][5], 0) != NULL) abort();
}

int main(int count, char** arguments) {
  const char* kind = count > 1 ? arguments[1] : "";
  pthread_barrier_init(&first_done, NULL, 2);
  pthread_barrier_init(&both_done, NULL, 3);
  for (int heap = 0; heap < 2; ++heap) memset(blocks[heap], 1, sizeof blocks[heap]);
  pthread_t threads[2];
  const int parallel = strcmp(kind, "threads") == 0;
  const long before = resident();
  const uint64_t begin = now();
  if (strcmp(kind, "one") == 0) one();
  if (strcmp(kind, "families") == 0) families();
  if (parallel) {
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_barrier_wait(&both_done);
  }
  const uint64_t taken = now() - begin;
  const long end = resident();
  malloc_trim(0);
  const long trimmed = resident();
  printf("live peak %ld\nend %ld\ntrimmed %ld\nns %llu\n", live_peak - before, end - before,
         trimmed - before, (unsigned long long)taken);
  fflush(stdout);
  if (parallel) {
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  }
  return 0;
}
