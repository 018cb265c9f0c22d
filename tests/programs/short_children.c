// Children that end soon, one after another: fork N, exec N (each runs this program as "leaf"), or
// orphan, one that ends when its parent is gone. The parent has allocated nothing of its own.
#include <sched.h>

#include "truth.h"

static void* held;

KEEPS(leaf, held, 100)

static void outlive(pid_t parent) {
  while (getppid() == parent) sched_yield();
  site_leaf();
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const pid_t self = getpid();
  if (strcmp(argv[1], "leaf") == 0) {
    site_leaf();
  } else if (strcmp(argv[1], "orphan") == 0) {
    if (fork() == 0) outlive(self);
  } else if (argc > 2) {
    for (int i = atoi(argv[2]); i > 0; --i) {
      const pid_t child = fork();
      if (child == 0) {
        if (argv[1][0] == 'e') {
          execl(argv[0], argv[0], "leaf", (char*)NULL);
          _exit(127);
        }
        site_leaf();
        return 0;
      }
      if (waitpid(child, NULL, 0) != child) return 3;
    }
  }
  return 0;
}
