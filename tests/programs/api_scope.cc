// mtrace_scope: one that leaks, one that does not, one that is dismissed.
#include "mtrace.h"
#include "truth.h"

static void* kept[4];

SITE void site_in_scope(int i, size_t size) {
  kept[i] = malloc(sized(size));
  NO_TAIL;
}

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  {
    mtrace_scope guard("quiet");
    site_in_scope(0, 50);
    printf("growth %ld\n", static_cast<long>(guard.growth()));
    free(kept[0]);
  }
  {
    mtrace_scope guard("dismissed");
    site_in_scope(1, 60);
    guard.dismiss();
  }
  {
    mtrace_scope guard("leaky\tone");
    site_in_scope(2, 70);
  }
  puts("end");
  return 0;
}
