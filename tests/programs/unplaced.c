// Blocks from before an attach, and more after it than MTRACE_MAX_BLOCKS has room for. "x": makes
// the new ones; "f": frees the old ones; "r": resizes and frees half of the new ones.
#include "truth.h"

enum { kOld = 2000, kNew = 4000 };
static void* old[kOld];
static void* fresh[kNew];

int main(void) {
  for (int i = 0; i < kOld; ++i) check((old[i] = malloc(5000)) != NULL, "malloc");
  setvbuf(stdout, NULL, _IONBF, 0);
  puts("ready");
  char command;
  while (read(0, &command, 1) == 1) {
    for (int i = 0; command == 'x' && i < kNew; ++i) {
      check((fresh[i] = malloc(100)) != NULL, "malloc");
    }
    for (int i = 0; command == 'f' && i < kOld; ++i) free(old[i]);
    for (int i = 0; command == 'r' && i < kNew; i += 2) {
      check((fresh[i] = realloc(fresh[i], 300)) != NULL, "realloc");
      free(fresh[i]);
    }
    puts("done");
  }
  return 0;
}
