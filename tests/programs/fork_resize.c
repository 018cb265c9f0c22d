// The first that a child of _Fork does is a realloc of what its parent allocated; then it reports,
// frees that, and reports at its end.
#include "mtrace.h"
#include "truth.h"

int main(void) {
  char* block = malloc(1 << 20);
  if (mtrace_report() < 0) return 2;
  const pid_t child = _Fork();
  if (child == 0) {
    block = realloc(block, 3 << 20);
    if (mtrace_report() < 0) return 3;
    free(block);
    return 0;
  }
  printf("child %d\n", (int)child);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 4;
}
