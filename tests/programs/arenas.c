/* Threads (their number is argument 1) that in turn fill memory of their own, each in an arena of
 * its own as long as there are enough, and free all but every 64th block. Prints each block that
 * stays, "block 0 ADDRESS SIZE", then "ready", and waits for its input to end. With argument 2, it
 * maps memory in front of an arena, of which the kernel makes one mapping with the arena. Argument
 * "lost": then only the blocks of an arena hold each other. */
#include <sys/mman.h>

#include "truth.h"

enum { kBlocks = 4096, kBytes = 2000, kKept = 64, kMostThreads = 16 };

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t filled;
static char* kept[kMostThreads][kBlocks / kKept];

static char* blocks[kBlocks]; /* of the thread whose turn it is */

static void* work(void* argument) {
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
      /* What was freed still names the next block that stays. */
      memcpy(blocks[i] + 64, &blocks[i | (kKept - 1)], sizeof(char*));
      free(blocks[i]);
    }
  }
  pthread_mutex_unlock(&turn);
  pthread_barrier_wait(&filled);
  for (;;) pause();
  return NULL;
}

/* A mapping is joined with an arena only if both reserve nothing. Where another arena ends, its
 * last part is taken: it will not grow so far. */
static int join_an_arena(int threads) {
  enum { kArena = 64 << 20, kSize = 1 << 20 };
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char* arenas[kMostThreads];
  for (int i = 0; i < threads; ++i) {
    arenas[i] = (char*)((size_t)kept[i][0] & ~(size_t)(kArena - 1));
    if (mmap(arenas[i] - kSize, kSize, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, -1,
             0) != MAP_FAILED) {
      return 1;
    }
  }
  for (int i = 0; i < threads * threads; ++i) {
    char* const arena = arenas[i / threads];
    if (arena - kArena == arenas[i % threads]) {
      return mmap(arena - kSize, kSize, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0) !=
             MAP_FAILED;
    }
  }
  return 0;
}

/* Each block holds the next one of its arena, the last one the first. */
static void lose_all(int threads) {
  enum { kCount = kBlocks / kKept };
  for (int i = 0; i < threads; ++i) {
    for (int j = 0; j < kCount; ++j) memcpy(kept[i][j], &kept[i][(j + 1) % kCount], sizeof(char*));
  }
  memset(kept, 0, sizeof kept);
  memset(blocks, 0, sizeof blocks);
}

/* Leaves nothing of them in the frame of main. */
__attribute__((noinline)) static int print_blocks(int threads) {
  char line[100];
  for (int i = 0; i < threads * (kBlocks / kKept); ++i) {
    const int length =
        snprintf(line, sizeof line, "block 0 %lu %d\n",
                 (unsigned long)kept[i / (kBlocks / kKept)][i % (kBlocks / kKept)], (int)kBytes);
    if (write(1, line, (size_t)length) != length) return 0;
  }
  return 1;
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
  if (argc > 2 && !join_an_arena(threads)) return 3;
  if (!print_blocks(threads)) return 1;
  if (argc > 2 && strcmp(argv[2], "lost") == 0) lose_all(threads);
  if (write(1, "ready\n", 6) != 6) return 1;
  await_end();
  return 0;
}
