/* The API at odd moments: before main, in a signal handler, in an exit handler, in the child of a
 * fork and of a vfork. Each moment records one resource of the kind "moment" and leaves a note. */
#include "mtrace.h"
#include "truth.h"

static char* volatile kept;

SITE void site_moment(uint64_t id, const char* name) {
  check(mtrace_note_text(name, 0) == 0, name);
  check(mtrace_record("moment", id, 100) == 0, name);
  check(mtrace_live_bytes() != 0, name);
  check(mtrace_start() == 1, name);
  NO_TAIL;
}

__attribute__((constructor(101))) static void before_main(void) {
  kept = malloc(sized(10));
  site_moment(1, "before main");
  check(mtrace_save("early") == 0, "save before main");
}

static void in_handler(int number) {
  (void)number;
  const int file = 2; /* nobody looks */
  (void)file;
  site_moment(2, "in a handler");
}

static void at_exit(void) {
  site_moment(3, "at exit");
  check(mtrace_compare("early") > 0, "compare at exit");
  check(mtrace_release("moment", 1) == 0, "release at exit");
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
  atexit(at_exit);
  signal(SIGUSR2, in_handler);
  raise(SIGUSR2);
  kept = malloc(sized(30)); /* the first 10 bytes stay */
  mtrace_report_label("before the fork");
  mtrace_note("for the parent");
  const pid_t child = fork();
  if (child == 0) {
    check(mtrace_compare("early") > 0, "the parent's savepoint");
    check(mtrace_release("moment", 2) == 0, "the parent's resource");
    site_moment(4, "in the child");
    check(mtrace_report_label("child") == 1, "report 1 of the child");
    return 0;
  }
  check(reap(child) == 0, "the child");
  const pid_t borrower = vfork();
  if (borrower == 0) {
    mtrace_note_text("of a vfork child", 0);
    mtrace_record("moment", 5, 7);
    if (mtrace_savepoint_new() != 0) _exit(1);
    _exit(0);
  }
  check(reap(borrower) == 0, "the vfork child");
  return 0;
}
