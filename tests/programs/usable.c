/* Prints the sum of malloc_usable_size() of its live blocks, and compares it with what the library
 * says, in two phases. */
#include <malloc.h>

#include "mtrace.h"
#include "truth.h"

enum { kCount = 300 };
static void* blocks[kCount];
static size_t sizes[kCount];

static void usable(int phase, size_t requested_before, size_t usable_before) {
  size_t requested = 0;
  size_t all = 0;
  for (int i = 0; i < kCount; ++i) {
    requested += sizes[i];
    all += malloc_usable_size(blocks[i]);
  }
  struct mtrace_usage_totals now;
  check(mtrace_usage(&now) == 0, "mtrace_usage");
  check(now.requested == requested_before + requested, "requested bytes");
  check(now.usable == usable_before + all, "usable bytes");
  check(now.blocks == mtrace_live_blocks(), "blocks");
  printf("usable %d %zu\n", phase, now.usable);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  setvbuf(stdout, NULL, _IONBF, 0);
  struct mtrace_usage_totals before;
  check(mtrace_usage(NULL) == -1, "no place for the answer");
  check(mtrace_usage(&before) == 0, "mtrace_usage");
  for (int i = 0; i < kCount; ++i) {
    sizes[i] = i < 200 ? (size_t)i : (size_t)i * i * 10; /* some with a mapping of their own */
    blocks[i] = malloc(sized(sizes[i]));
  }
  usable(1, before.requested, before.usable);
  tell(1);
  for (int i = 0; i < kCount; i += 3) {
    free(blocks[i]);
    blocks[i] = NULL;
    sizes[i] = 0;
  }
  for (int i = 1; i < kCount; i += 3) {
    sizes[i] = sizes[i] * 3 + 5;
    blocks[i] = realloc(blocks[i], sized(sizes[i]));
  }
  usable(2, before.requested, before.usable);
  tell(2);
  return 0;
}
