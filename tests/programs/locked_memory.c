// locked_memory current|future|both|onfault|later: locks its memory so, says what mlockall(2) made
// of that, takes 30 blocks of 64 KiB and 3,000 small ones from stacks of their own, and says how
// many it got. "later": locks as it is, then gives up root for user 65534. On its last line is what
// is locked, in KiB.
#include <sys/mman.h>

#include "truth.h"

static int got;

static void take(size_t bytes) {
  char* block = malloc(bytes);
  if (block == NULL) return;
  memset(block, 1, bytes);
  ++got;
}

static void take_deep(unsigned path, size_t bytes) {
  if (path == 0) {
    take(bytes);
  } else if (path % 2 == 0) {
    take_deep(path / 2, bytes);
  } else {
    take_deep(path / 2, bytes);
  }
  __asm__ volatile("");
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "both";
  int flags = MCL_CURRENT | MCL_FUTURE;
  if (strcmp(how, "current") == 0) flags = MCL_CURRENT;
  if (strcmp(how, "future") == 0) flags = MCL_FUTURE;
  if (strcmp(how, "onfault") == 0) flags |= MCL_ONFAULT;
  errno = 0;
  const int result = mlockall(flags);
  printf("mlockall %d %s\n", result, strerror(errno));
  if (strcmp(how, "later") == 0 && setresuid(65534, 65534, 65534) != 0) return 2;
  for (int i = 0; i < 30; ++i) take(64 << 10);
  for (unsigned i = 1; i <= 3000; ++i) take_deep(i, 100);
  printf("got %d\n", got);
  fflush(stdout);
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  if (status == NULL) return 2;
  while (fgets(line, sizeof line, status) != NULL) {
    long size = 0;
    if (sscanf(line, "VmLck: %ld", &size) == 1) printf("locked %ld\n", size);
  }
  return 6;
}
