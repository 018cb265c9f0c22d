// random_sizes N: N blocks of random sizes, each freed a random number of blocks later.
#include <stdlib.h>

enum { kKept = 1024 };

int main(int argc, char** argv) {
  static void* kept[kKept];
  unsigned seed = 1;
  for (long left = argc > 1 ? atol(argv[1]) : 0; left > 0; --left) {
    seed = seed * 1664525u + 1013904223u;
    void** place = &kept[seed >> 22];
    free(*place);
    *place = malloc(seed >> 12 & 0xffff);
  }
  return 0;
}
