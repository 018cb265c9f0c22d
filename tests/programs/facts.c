/* Sites of which every field of a report is known. Says
 *   fact PHASE SITE KEY LOW HIGH    a field of the site's entries, together; times in ms
 *   head PHASE KEY NAME VALUE       by how much a count in the header has grown in that phase
 * and asks for a report after each phase. MTRACE_TOGGLE_SIGNAL must be USR2. */
#include <stdint.h>
#include <malloc.h>
#include <time.h>

#include "truth.h"

static void* kept[256];

static void fact(int phase, const char* site, const char* key, double low, double high) {
  printf("fact %d %s %s %.3f %.3f\n", phase, site, key, low, high);
}
static void exactly(int phase, const char* site, const char* key, long value) {
  fact(phase, site, key, (double)value, (double)value);
}
static void head(int phase, const char* key, const char* name, long value) {
  printf("head %d %s %s %ld\n", phase, key, name, value);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}
static void until(double time) {
  while (now() < time) {
  }
}

SITE void site_temporary(void) {
  for (int i = 0; i < 500; ++i) {
    void* p = malloc(sized(24));
    fill(p, 24);
    free(p);
  }
}

/* The first of each two is freed after the second was allocated. */
SITE void site_every_other(void) {
  for (int i = 0; i < 100; ++i) {
    void* a = malloc(sized(32));
    void* b = malloc(sized(40));
    free(a);
    free(b);
  }
}

/* A realloc frees and allocates, but is no temporary allocation. */
SITE void site_moves(void) {
  void* p = malloc(sized(10));
  for (size_t n = 1; n < 10; ++n) p = realloc(p, sized(1000 * n));
  kept[200] = p;
}

/* Allocated after the block that is freed, but failed: the thread has asked for memory since. */
SITE void site_failure_between(void) {
  void* p = malloc(sized(16));
  void* none = malloc(sized(PTRDIFF_MAX));
  check(none == NULL, "a block of PTRDIFF_MAX");
  free(p);
}

SITE void site_slack(void) {
  long slack = 0;
  for (size_t i = 0; i < 100; ++i) {
    kept[i] = malloc(sized(20 + 7 * i));
    slack += (long)(malloc_usable_size(kept[i]) - (20 + 7 * i));
  }
  exactly(1, __func__, "slack", slack);
}
SITE void site_slack_freed(void) {
  for (int i = 100; i < 150; ++i) kept[i] = malloc(sized(33));
  for (int i = 100; i < 150; ++i) free(kept[i]);
}

static double held_low, held_high;
SITE void site_held(void) {
  const double before = now();
  kept[201] = malloc(sized(8));
  const double after = now();
  until(after + 60);
  held_low = now() - after;
  free(kept[201]);
  held_high = now() - before;
}

static double old_before, old_after;
SITE void site_old(void) {
  old_before = now();
  kept[202] = malloc(sized(8));
  old_after = now();
  kept[203] = malloc(sized(8));
}

#define MIB (1L << 20)
SITE void site_peak_first(void) { kept[210] = malloc(sized(3 * MIB)); NO_TAIL; }
SITE void site_peak_second(void) { kept[211] = malloc(sized(5 * MIB)); NO_TAIL; }
SITE void site_after_peak(void) { kept[212] = malloc(sized(1 * MIB)); NO_TAIL; }
SITE void site_large(void) {
  /* Larger than the packed form of a block holds. */
  kept[213] = malloc(sized(3L << 30));
  kept[214] = realloc(malloc(sized(2L << 30)), sized(5L << 30));
}

SITE void site_unseen(void) { kept[220] = malloc(sized(77)); NO_TAIL; }
SITE void site_seen(void) { kept[221] = malloc(sized(78)); NO_TAIL; }

static void* volatile kept_volatile;
static void report(void) { kill(getpid(), SIGUSR1); }
static void toggle(void) { kill(getpid(), SIGUSR2); }

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);

  /* 1: what the counters say. */
  site_temporary();
  site_every_other();
  site_moves();
  site_failure_between();
  site_slack();
  site_slack_freed();
  exactly(1, "site_temporary", "allocs", 500);
  exactly(1, "site_temporary", "temporary", 500);
  exactly(1, "site_temporary", "slack", 0);
  exactly(1, "site_every_other", "allocs", 200);
  exactly(1, "site_every_other", "temporary", 100);
  exactly(1, "site_moves", "allocs", 10);
  exactly(1, "site_moves", "frees", 9);
  exactly(1, "site_moves", "temporary", 0);
  exactly(1, "site_moves", "live", 9000);
  exactly(1, "site_failure_between", "frees", 1);
  exactly(1, "site_failure_between", "temporary", 0);
  exactly(1, "site_slack_freed", "slack", 0);
  exactly(1, "site_slack_freed", "frees", 50);
  head(1, "failed-allocations", "-", 1);
  report();

  /* 2: time. */
  site_old();
  site_held();
  fact(2, "site_held", "lifetime-min", held_low, held_high);
  fact(2, "site_held", "lifetime-mean", held_low, held_high);
  fact(2, "site_held", "lifetime-max", held_low, held_high);
  exactly(2, "site_held", "age", 0);
  const double before = now();
  report();
  fact(2, "site_old", "age", before - old_after, now() - old_before);
  exactly(2, "site_old", "lifetime-max", 0);

  /* 3: a peak of 8 MiB more than there was, of which nothing is left. */
  site_peak_first();
  site_peak_second();
  free(kept[210]);
  site_after_peak();
  free(kept[211]);
  free(kept[212]);
  exactly(3, "site_peak_first", "peak", 3 * MIB);
  exactly(3, "site_peak_second", "peak", 5 * MIB);
  exactly(3, "site_after_peak", "peak", 0);
  exactly(3, "site_peak_first", "live", 0);
  exactly(3, "site_moves", "peak", 9000);
  head(3, "peak", "-", 8 * MIB);
  report();

  /* 4: every function once or more; the peak stays where it is. */
  kept[0] = realloc(kept[0], sized(100));
  kept[230] = calloc(sized(3), sized(5));
  kept[231] = calloc(sized(3), sized(5));
  kept[232] = reallocarray(NULL, sized(2), sized(3));
  kept[233] = memalign(sized(64), sized(10));
  check(posix_memalign(&kept[234], 64, sized(10)) == 0, "posix_memalign");
  kept[235] = aligned_alloc(sized(64), sized(64));
  kept[236] = valloc(sized(10));
  kept[237] = pvalloc(sized(10));
  for (int i = 230; i < 238; ++i) free(kept[i]);
  kept_volatile = realloc(kept[1], 0);
  kept_volatile = malloc(sized(PTRDIFF_MAX));
  kept_volatile = calloc(sized(SIZE_MAX), sized(2));
  kept_volatile = realloc(kept[2], sized(PTRDIFF_MAX));
  head(4, "calls", "malloc", 1);
  head(4, "calls", "calloc", 3);
  head(4, "calls", "realloc", 3);
  head(4, "calls", "reallocarray", 1);
  head(4, "calls", "memalign", 1);
  head(4, "calls", "posix_memalign", 1);
  head(4, "calls", "aligned_alloc", 1);
  head(4, "calls", "valloc", 1);
  head(4, "calls", "pvalloc", 1);
  head(4, "calls", "free", 8);
  head(4, "failed-allocations", "-", 3);
  head(4, "unknown-frees", "-", 0);
  head(4, "peak", "-", 0);
  report();

  /* 5: recording stopped and gone on with. */
  toggle();
  site_unseen();
  free(kept[3]); /* known: taken out */
  report();
  exactly(5, "site_slack", "frees", 1);
  exactly(5, "site_slack", "freed", 41);
  exactly(5, "site_unseen", "allocs", 0);
  head(5, "unknown-frees", "-", 0);
  head(5, "calls", "malloc", 0);

  toggle();
  site_seen();
  free(kept[220]); /* not known */
  head(6, "unknown-frees", "-", 1);
  exactly(6, "site_seen", "live", 78);
  report();

  /* 7: blocks beyond 1 GiB. */
  site_large();
  exactly(7, "site_large", "live", 8L << 30);
  exactly(7, "site_large", "allocated", 10L << 30);
  exactly(7, "site_large", "freed", 2L << 30);
  exactly(7, "site_large", "peak", 8L << 30);
  report();
  free(kept[213]);
  free(kept[214]);
  exactly(8, "site_large", "freed", 8L << 30);
  exactly(8, "site_large", "live", 0);
  return 0;
}
