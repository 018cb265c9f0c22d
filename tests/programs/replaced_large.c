/* Large blocks that are freed past the hooks, and whose addresses come back to small blocks: from
 * then on their site holds nothing. See truth.h. */
#include <malloc.h>

#include "truth.h"

extern void __libc_free(void*);

enum { kCount = 20 };
static void* large[kCount];
static void* small[kCount];

static size_t size_of(int i) { return 5000 + (size_t)i * 100; }

SITE void site_large(int i) {
  large[i] = malloc(sized(size_of(i)));
  HOLD(size_of(i));
}
SITE void site_between(void) { /* so that freed neighbours do not become one */
  check(malloc(sized(2000)) != NULL, "malloc");
  HOLD(2000);
}
SITE void site_rest(size_t size) { /* of what the small block has begun */
  check(malloc(sized(size)) != NULL, "malloc");
  HOLD(size);
}
SITE void site_small(int i) {
  small[i] = malloc(sized(100));
  HOLD(100);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  for (int i = 0; i < kCount; ++i) {
    site_large(i);
    site_between();
  }
  tell(1);
  for (int i = 0; i < kCount; ++i) {
    const size_t usable = malloc_usable_size(large[i]);
    __libc_free(large[i]);
    site_small(i); /* the beginning of what was just freed */
    check(small[i] == large[i], "an address that did not come back");
    DROP(large, size_of(i));
    site_rest(usable - 112);
  }
  tell(2);
  for (int i = 0; i < kCount; ++i) {
    free(small[i]);
    DROP(small, 100);
  }
  tell(3);
  return 0;
}
