/* Does with its arguments and environment what setproctitle(3) does: copies them, and overwrites the
 * text that exec left. Then a child allocates. */
#include "truth.h"

extern char** environ;
static void* block;

KEEPS(child, block, 333)

int main(int argc, char** argv) {
  static char* copies[1000];
  int count = 0;
  char* end = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
  for (; environ[count] != NULL; ++count) {
    if (count == 999) return 2;
    copies[count] = strdup(environ[count]);
    end = environ[count] + strlen(environ[count]) + 1;
  }
  memset(argv[0], 'x', (size_t)(end - argv[0]) - 1);
  environ = copies;
  const pid_t child = fork();
  if (child == 0) {
    site_child();
    exit(0);
  }
  printf("child %d\n", (int)child);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
