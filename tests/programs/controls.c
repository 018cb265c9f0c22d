/* Calls of mallopt, malloc_trim and mallinfo at known sites, before and after a report. */
#include <malloc.h>

#include "truth.h"

SITE void site_mallopt(void) { check(mallopt(M_ARENA_MAX, 2) == 1, "mallopt"); }
SITE void site_trim(void) {
  malloc_trim(1000);
  NO_TAIL;
}
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
SITE void site_info(void) { check(mallinfo().uordblks > 0, "mallinfo"); }
SITE void site_info2(void) { check(mallinfo2().uordblks > 0, "mallinfo2"); }

int main(int argc, char** argv) {
  begin(argc, argv);
  site_mallopt();
  site_trim();
  site_info();
  tell(1);
  for (int i = 0; i < 100; ++i) site_info2();
  tell(2);
  return 0;
}
