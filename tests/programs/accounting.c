/* Sites that allocate and free a known number of times between two reports. Each line told:
 *   site PHASE NAME ALLOCATIONS BYTES FREES BYTES   since the previous report */
#include "truth.h"

static void* kept[64];

/* 20 blocks of 100 bytes, 15 of them freed again. */
SITE void site_some_kept(void) {
  for (int i = 0; i < 20; ++i) kept[i] = malloc(sized(100));
  for (int i = 5; i < 20; ++i) free(kept[i]);
}

/* Everything is freed again: nothing stays, but there was work. */
SITE void site_none_kept(void) {
  for (int i = 0; i < 1000; ++i) {
    void* p = malloc(sized(24));
    fill(p, 24);
    free(p);
  }
}

/* Grows one block to 10 times 64 bytes: 10 allocations, 9 frees. */
SITE void site_grows(void) {
  for (size_t n = 1; n <= 10; ++n) kept[32] = realloc(kept[32], sized(64 * n));
}

SITE void site_calloc(void) { kept[33] = calloc(sized(3), sized(7)); }

static void told(int phase, const char* name, long allocations, long bytes, long frees,
                 long freed) {
  printf("site %d %s %ld %ld %ld %ld\n", phase, name, allocations, bytes, frees, freed);
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
  site_some_kept();
  site_none_kept();
  site_grows();
  site_calloc();
  told(1, "site_some_kept", 20, 2000, 15, 1500);
  told(1, "site_none_kept", 1000, 24000, 1000, 24000);
  told(1, "site_grows", 10, 64 * 55, 9, 64 * 45);
  told(1, "site_calloc", 1, 21, 0, 0);
  kill(getpid(), SIGUSR1);
  /* Phase 2: only frees of blocks of phase 1, and a site that does the same again. */
  for (int i = 0; i < 5; ++i) free(kept[i]);
  free(kept[32]);
  site_none_kept();
  told(2, "site_some_kept", 0, 0, 5, 500);
  told(2, "site_none_kept", 1000, 24000, 1000, 24000);
  told(2, "site_grows", 0, 0, 1, 640);
  kill(getpid(), SIGUSR1);
  return 0;
}
