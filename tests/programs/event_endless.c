// event_endless: allocates and frees until it is killed. Says "ready" after a while.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  static void* kept[64];
  for (unsigned long i = 0;; ++i) {
    free(kept[i * 7 % 64]);
    kept[i * 7 % 64] = malloc(i % 500 + 1);
    if (i == 20000) {
      puts("ready");
      fflush(stdout);
    }
  }
}
