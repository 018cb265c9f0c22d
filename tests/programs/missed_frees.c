// Blocks that are freed past the hooks, as by a library that is bound to libc's own free, and whose
// addresses come back: from then on their sites hold nothing. See truth.h. Phase 1: missed, and not
// back yet; 2: back, as blocks of other sites; 3: freed as it should be.
#include "truth.h"

extern void __libc_free(void*);

static void* blocks[20];
static size_t size_of(int i) { return i % 2 ? 100 : 900; }

SITE void site_missed(void) {
  for (int i = 0; i < 10; ++i) {
    blocks[i] = malloc(sized(size_of(i)));
    HOLD(size_of(i));
  }
}
SITE void site_back(void) {
  for (int i = 0; i < 10; ++i) {
    void* p = malloc(sized(size_of(i)));
    int same = 0;
    for (int j = 0; j < 10; ++j) same |= blocks[j] == p;
    check(same, "an address that did not come back");
    blocks[10 + i] = p;
    HOLD(size_of(i));
    DROP(missed, size_of(i));
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  site_missed();
  for (int i = 0; i < 4; ++i) __libc_free(blocks[i]);
  tell(1);
  for (int i = 4; i < 10; ++i) __libc_free(blocks[i]);
  site_back();
  tell(2);
  for (int i = 0; i < 10; ++i) {
    free(blocks[10 + i]);
    DROP(back, size_of(i));
  }
  tell(3);
  return 0;
}
