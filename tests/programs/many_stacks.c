// many_stacks N: leaves one block behind at each of N call stacks, at most 4^9 = 262,144.
#include <stdlib.h>

static void* volatile g_block;

static inline __attribute__((always_inline)) void at_the_end(int size) {
  g_block = malloc((size_t)size);
}
#include "call_paths.h"

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
  for (unsigned i = 0; i < count; ++i) go_on(i * 2654435761u >> 14, 9, 24);
  return 0;
}
