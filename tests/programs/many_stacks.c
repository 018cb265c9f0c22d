// many_stacks N: leaves one block behind at each of N call stacks, at most 4^9 = 262,144.
#include <stdlib.h>

static void* volatile g_block;

// Sets of two bits of `path` choose who calls whom, nine calls deep.
#define LEVEL(name) __attribute__((noinline)) static void name(unsigned path, int depth)
LEVEL(north);
LEVEL(east);
LEVEL(south);
LEVEL(west);

static inline __attribute__((always_inline)) void go_on(unsigned path, int depth) {
  if (depth == 0) {
    g_block = malloc(24 + path % 64);
    return;
  }
  switch (path % 4) {
    case 0:
      north(path / 4, depth - 1);
      break;
    case 1:
      east(path / 4, depth - 1);
      break;
    case 2:
      south(path / 4, depth - 1);
      break;
    default:
      west(path / 4, depth - 1);
      break;
  }
}

// What follows a call keeps it from becoming a jump, and the four from becoming one.
#define DEFINE(name)              \
  LEVEL(name) {                   \
    go_on(path, depth);           \
    __asm__ volatile("# " #name); \
  }
DEFINE(north)
DEFINE(east)
DEFINE(south)
DEFINE(west)

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
  for (unsigned i = 0; i < count; ++i) go_on(i * 2654435761u >> 14, 9);
  return 0;
}
