// A child that keeps a block only in memory which its parent has allocated before the fork, and loses
// none. It writes "ready" and waits for the end of its input.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void** volatile kept;

// Its address stands nowhere else: the volatile variables below are wiped with their stack.
__attribute__((noipa)) static void keep(void) {
  void* volatile block = malloc(1000);
  memset(block, 0, 1000);
  kept[5] = block;
  block = NULL;
}

__attribute__((noipa)) static void wipe_stack(void) {
  volatile char room[16384];
  for (size_t i = 0; i < sizeof room; ++i) room[i] = 0;
}

int main(void) {
  kept = malloc(100 * sizeof *kept);
  memset(kept, 0, 100 * sizeof *kept);
  const pid_t child = fork();
  if (child != 0) return waitpid(child, NULL, 0) == child ? 0 : 1;
  keep();
  wipe_stack();
  char byte;
  if (write(1, "ready\n", 6) != 6) return 1;
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}
