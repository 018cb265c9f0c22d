// Three call sites of which a known share of the blocks is never freed: 1 of 500, none of 20, 3
// of 3.
#include <stdlib.h>

#define SITE(name, size)                                               \
  static __attribute__((noinline)) void name(int blocks, int leaked) { \
    for (int i = 0; i < blocks; ++i) {                                 \
      void* volatile block = malloc(size);                             \
      if (i >= leaked) free(block);                                    \
    }                                                                  \
  }

SITE(leaks_rarely, 1001)
SITE(leaks_never, 1002)
SITE(leaks_always, 1003)

int main(void) {
  leaks_rarely(500, 1);
  leaks_never(20, 0);
  leaks_always(3, 3);
  return 0;
}
