// vfork_parent: says "ready" in a child of vfork, which ends when it has read a line. Until then
// the parent waits in the kernel, where nothing but its end stops it. Then says "on" and ends
// with 5.
#include "truth.h"

int main(void) {
  void* volatile block = malloc(1000);
  const pid_t child = vfork();
  if (child == 0) {
    char letter = 0;
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    while (read(STDIN_FILENO, &letter, 1) == 1 && letter != '\n') {
    }
    _exit(0);
  }
  waitpid(child, NULL, 0);
  puts("on");
  free(block);
  return 5;
}
