// Allocations that fail, at known sites. Goes on when a byte comes on its input.
#include <malloc.h>
#include <stdint.h>

#include "truth.h"

static volatile size_t huge = SIZE_MAX / 2 - 4096;
static volatile size_t three = 3;

SITE void site_malloc(void) {
  for (int i = 0; i < 5; ++i) check(malloc(huge) == NULL, "malloc");
  NO_TAIL;
}
SITE void site_calloc(void) {
  for (int i = 0; i < 2; ++i) check(calloc(huge, 8) == NULL, "calloc");
  NO_TAIL;
}
SITE void site_realloc(void) {
  void* p = malloc(sized(100));
  check(realloc(p, huge) == NULL, "realloc");
  free(p);
  NO_TAIL;
}
// The product overflows: no allocator is asked.
SITE void site_reallocarray(void) {
  void* volatile p = malloc(sized(100));
  check(reallocarray(NULL, huge, 8) == NULL && errno == ENOMEM, "reallocarray");
  errno = 0;
  check(reallocarray(p, huge, 8) == NULL && errno == ENOMEM, "reallocarray of a block");
  free(p);
  NO_TAIL;
}
SITE void site_posix_memalign(void) {
  void* p = NULL;
  check(posix_memalign(&p, 64, huge) == ENOMEM, "posix_memalign");
  NO_TAIL;
}
// No alignments: memory is not what these lack. Other allocators round some of them up.
SITE void site_refused(void) {
  void* p = NULL;
  check(posix_memalign(&p, 3, 100) == EINVAL, "posix_memalign of 3");
  check(posix_memalign(&p, 0, 100) == EINVAL, "posix_memalign of 0");
  errno = 0;
  free(memalign(three, 100));
  free(aligned_alloc(three, 100));
  NO_TAIL;
}

// 96 TiB: less than the address space, but nowhere in one piece.
SITE void site_exact(void) {
  volatile size_t large = (size_t)96 << 40;
  check(malloc(large) == NULL, "malloc of 96 TiB");
  NO_TAIL;
}

int main(int argc, char** argv) {
  char byte;
  begin(argc, argv);
  if (argc > 1 && strcmp(argv[1], "wait") == 0) {
    print("ready");
    if (read(0, &byte, 1) < 0) return 1;
  }
  if (argc > 1 && strcmp(argv[1], "exact") == 0) site_exact();
  site_malloc();
  site_calloc();
  site_realloc();
  site_reallocarray();
  site_posix_memalign();
  site_refused();
  print("done");
  return argc > 1 && strcmp(argv[1], "wait") == 0 && read(0, &byte, 1) < 0;
}
