// Recording that is stopped and gone on with, by the signal of MTRACE_TOGGLE_SIGNAL (USR2) and by
// mtrace.h. Argument 1 says which part.
#include "mtrace.h"
#include "truth.h"

static void* kept[8];

SITE void site_before(void) {
  kept[0] = malloc(sized(1000));
  kept[1] = malloc(sized(1001));
  NO_TAIL;
}
KEEPS(unseen, kept[2], 2000)
KEEPS(seen, kept[3], 3000)
KEEPS(child, kept[4], 4000)
GIVES(thread, (size_t size), malloc(sized(size)))
SITE void* site_moving(void* p, size_t size) {
  p = realloc(p, sized(size));
  NO_TAIL;
  return p;
}

static void toggle(void) {
  errno = 55;
  kill(getpid(), SIGUSR2);
  check(errno == 55, "errno");
}

static void phases(void) {
  site_before();
  toggle();
  site_unseen();
  free(kept[0]);
  toggle();
  site_seen();
  free(kept[2]);
}

// Stopped before, and in the child gone on with; the parent stays stopped.
static void forked(void) {
  site_before();
  toggle();
  const pid_t child = fork();
  if (child == 0) {
    site_unseen();
    free(kept[0]);
    toggle();
    site_child();
    exit(0);
  }
  check(reap(child) == 0, "the child");
  printf("child %d\n", (int)child);
  site_unseen();
}

// The new program begins as its options say.
static void execed(const char* self) {
  toggle();
  site_before();
  execl(self, self, "phases", NULL);
}

static volatile int stop;
static volatile long rounds;

static void* work(void* argument) {
  void* blocks[64] = {NULL};
  unsigned seed = (unsigned)(size_t)argument;
  while (!stop) {
    for (int round = 0; round < 1000; ++round) {
      seed = seed * 1664525u + 1013904223u;
      const unsigned i = seed >> 26;
      if (blocks[i] == NULL) {
        blocks[i] = site_thread(1 + (seed >> 12) % 500);
      } else if ((seed & 0x800) != 0) {
        blocks[i] = site_moving(blocks[i], 1 + (seed >> 12) % 500);
      } else {
        free(blocks[i]);
        blocks[i] = NULL;
      }
    }
    __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
  }
  for (int i = 0; i < 64; ++i) free(blocks[i]);
  return NULL;
}

// Toggled while threads allocate. At the end everything is freed, what was seen and what was not.
static void threads(void) {
  pthread_t all[3];
  for (long i = 0; i < 3; ++i) pthread_create(&all[i], NULL, work, (void*)(i + 1));
  for (int i = 0; i < 500; ++i) {
    toggle();
    const long seen = rounds;
    while (i % 10 == 0 && rounds == seen) sched_yield();
    if (i % 100 == 0) mtrace_report();
  }
  stop = 1;
  for (int i = 0; i < 3; ++i) pthread_join(all[i], NULL);
  site_seen();
}

static void by_calls(void) {
  site_unseen();
  printf("start %d\n", mtrace_start());
  printf("start %d\n", mtrace_start());
  site_seen();
  free(kept[2]);
  printf("live %zu\n", mtrace_live_bytes());
  printf("stop %d\n", mtrace_stop());
  site_unseen();
  printf("live %zu\n", mtrace_live_bytes());
  fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  static char buffer[4096];
  setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
  if (strcmp(argv[1], "phases") == 0) {
    phases();
  } else if (strcmp(argv[1], "fork") == 0) {
    forked();
  } else if (strcmp(argv[1], "exec") == 0) {
    execed(argv[0]);
  } else if (strcmp(argv[1], "threads") == 0) {
    threads();
  } else if (strcmp(argv[1], "calls") == 0) {
    by_calls();
  } else {
    return 2;
  }
  return 0;
}
