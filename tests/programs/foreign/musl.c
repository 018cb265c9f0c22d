// Linked with musl. Says which libraries it was asked to load, and with "wait" as argument 1 goes
// on when its input ends.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* preload = getenv("LD_PRELOAD");
  printf("LD_PRELOAD=%s\n", preload != NULL ? preload : "(none)");
  if (argc > 1 && strcmp(argv[1], "wait") == 0) {
    char c;
    puts("ready");
    fflush(stdout);
    while (read(0, &c, 1) > 0) {
    }
  }
  return 3;
}
