// Asks for reports through mtrace.h, without linking the library. Prints what each call returns.
#include "mtrace.h"
#include "truth.h"

static void* kept[3];

KEEPS(first, kept[0], 111)
KEEPS(second, kept[1], 222)

int main(int argc, char** argv) {
  site_first();
  printf("report %d\n", mtrace_report());
  site_second();
  printf("label %d\n", mtrace_report_label("after the second site"));
  free(kept[0]);
  printf("null label %d\n", mtrace_report_label(NULL));
  printf("hostile label %d\n", mtrace_report_label("a\n# end\n+1\tblocks=+1\\\x01\xff"));
  if (argc > 1) printf("long label %d\n", mtrace_report_label(argv[1]));
  return 0;
}
