// execs: says "ready", and does what each line of its input says:
//   bare      becomes itself without an environment, so without the library, and says "bare"
//   fail      tries to become a program that there is none of, and says "failed"
//   keep N    leaves a block of N bytes behind and says "kept"
// It ends with its input.
#include "truth.h"

GIVES(kept, (size_t n), malloc(n))

int main(int argc, char** argv) {
  char line[64];
  puts(argc > 1 ? argv[1] : "ready");
  fflush(stdout);
  // Not stdio, which would read on.
  for (size_t length = 0; read(0, line + length, 1) == 1;) {
    if (line[length] != '\n') {
      check(++length < sizeof line, "a short line");
      continue;
    }
    line[length] = '\0';
    length = 0;
    if (strcmp(line, "bare") == 0) {
      char* const arguments[] = {argv[0], "bare", NULL};
      char* const nothing[] = {NULL};
      execve("/proc/self/exe", arguments, nothing);
      return 3;
    }
    if (strcmp(line, "fail") == 0) {
      execl("/nowhere/at/all", "nothing", NULL);
      printf("failed\n");
    } else if (strncmp(line, "keep ", 5) == 0) {
      check(site_kept((size_t)atol(line + 5)) != NULL, "memory");
      printf("kept\n");
    }
    fflush(stdout);
  }
  return 0;
}
