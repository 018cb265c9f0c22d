/* Threads (their number is argument 1) that in turn fill memory of their own, each in an arena of
 * its own as long as there are enough, and free all but every 64th block. Prints each block that
 * stays, "block 0 ADDRESS SIZE", then "ready", and waits for its input to end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBlocks = 4096, kBytes = 2000, kKept = 64, kMostThreads = 16 };

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t filled;
static char* kept[kMostThreads][kBlocks / kKept];

static void* work(void* argument) {
  static char* blocks[kBlocks]; /* of the thread whose turn it is */
  char** const mine = argument;
  /* An arena is a thread's from its first allocation on, so all have theirs before one fills it. */
  free(malloc(kBytes));
  pthread_barrier_wait(&filled);
  pthread_mutex_lock(&turn);
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(kBytes);
    memset(blocks[i], 1, kBytes);
  }
  for (int i = 0; i < kBlocks; ++i) {
    if (i % kKept == kKept - 1) {
      mine[i / kKept] = blocks[i];
    } else {
      free(blocks[i]);
    }
  }
  pthread_mutex_unlock(&turn);
  pthread_barrier_wait(&filled);
  for (;;) pause();
  return NULL;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 4;
  if (threads < 1 || threads > kMostThreads) return 2;
  pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, kept[i]) != 0) return 1;
  }
  pthread_barrier_wait(&filled);
  pthread_barrier_wait(&filled);
  char line[100];
  for (int i = 0; i < threads * (kBlocks / kKept); ++i) {
    const int length =
        snprintf(line, sizeof line, "block 0 %lu %d\n",
                 (unsigned long)kept[i / (kBlocks / kKept)][i % (kBlocks / kKept)], (int)kBytes);
    if (write(1, line, (size_t)length) != length) return 1;
  }
  if (write(1, "ready\n", 6) != 6) return 1;
  while (read(0, line, 1) > 0) {
  }
  return 0;
}
