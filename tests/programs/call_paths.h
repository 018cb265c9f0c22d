// Call stacks by number. Two bits of a path choose who calls whom at each level; at the end stands
// at_the_end(count), which the program defines before.
#define LEVEL(name) __attribute__((noinline)) static void name(unsigned path, int depth, int count)
LEVEL(north);
LEVEL(east);
LEVEL(south);
LEVEL(west);

static inline __attribute__((always_inline)) void go_on(unsigned path, int depth, int count) {
  if (depth == 0) {
    at_the_end(count);
    return;
  }
  switch (path % 4) {
    case 0:
      north(path / 4, depth - 1, count);
      break;
    case 1:
      east(path / 4, depth - 1, count);
      break;
    case 2:
      south(path / 4, depth - 1, count);
      break;
    default:
      west(path / 4, depth - 1, count);
      break;
  }
}

// What follows a call keeps it from becoming a jump, and the four from becoming one.
#define DEFINE(name)              \
  LEVEL(name) {                   \
    go_on(path, depth, count);    \
    __asm__ volatile("# " #name); \
  }
DEFINE(north)
DEFINE(east)
DEFINE(south)
DEFINE(west)
