// event_endless: allocates and frees until it is killed. Says "ready" after a while; with an
// argument, again and again.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  (void)argv;
  static void* kept[64];
  for (unsigned long i = 0;; ++i) {
    free(kept[i * 7 % 64]);
    kept[i * 7 % 64] = malloc(i % 500 + 1);
    if (i == 20000 || (argc > 1 && i > 0 && i % 20000 == 0)) {
      puts("ready");
      fflush(stdout);
    }
  }
}
