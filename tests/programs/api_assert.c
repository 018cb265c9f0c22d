/* Asserts that nothing has grown: api_assert MANNER HOW, MANNER name or handle, HOW shrink, grow,
 * many (nine sites) or check (no abort). Says "after" when the assertion has let it go on. */
#include "mtrace.h"
#include "truth.h"

static void* kept[16];
static volatile int children;

static void count_child(int number) {
  (void)number;
  ++children;
}

KEEPS(before, kept[0], 100)
SITE void site_grows(void) {
  kept[1] = malloc(sized(4000));
  kept[2] = malloc(sized(96));
  NO_TAIL;
}
#define MANY(n)                          \
  SITE void site_many_##n(void) {        \
    kept[n + 3] = malloc(sized(n * 10)); \
    NO_TAIL;                             \
  }
MANY(1)
MANY(2)
MANY(3) MANY(4) MANY(5) MANY(6) MANY(7) MANY(8) MANY(9)

    int main(int argc, char** argv) {
  if (argc < 3) return 2;
  setvbuf(stdout, NULL, _IONBF, 0);
  signal(SIGCHLD, count_child);
  const int by_handle = strcmp(argv[1], "handle") == 0;
  const char* how = argv[2];
  site_before();
  mtrace_savepoint savepoint = 0;
  if (by_handle) {
    savepoint = mtrace_savepoint_new();
    mtrace_savepoint_label(savepoint, "the phase");
  } else {
    mtrace_save("the phase");
  }
  free(kept[0]);
  if (strcmp(how, "shrink") != 0) site_grows();
  if (strcmp(how, "many") == 0) {
    site_many_1();
    site_many_2();
    site_many_3();
    site_many_4();
    site_many_5();
    site_many_6();
    site_many_7();
    site_many_8();
    site_many_9();
  }
  if (strcmp(how, "check") == 0) {
    const long grown =
        (long)(by_handle ? mtrace_savepoint_check(savepoint) : mtrace_check("the phase"));
    printf("grown %ld\n", grown);
    /* What ran in between must not show. */
    check(wait(NULL) == -1 && errno == ECHILD, "a child");
    check(children == 0, "a SIGCHLD");
  } else if (by_handle) {
    mtrace_savepoint_assert(savepoint);
  } else {
    mtrace_assert("the phase");
  }
  puts("after");
  return 0;
}
