// Keeps the only pointer to a block in the file that its argument names, which it maps shared; without
// an argument, in anonymous shared memory; with "fork", in a child and in memory which its parent
// has allocated before. Waits for its input to end.
#include <sys/mman.h>

#include "truth.h"

// Its address stands nowhere else: the volatile variables are wiped with their stack.
static __attribute__((noipa)) void hold(void** page, size_t size) {
  void* volatile block = malloc(size);
  memset(block, 0, size);
  page[5] = block;
  block = NULL;
}

static void** map(const char* name) {
  const int file = name != NULL ? open(name, O_RDWR | O_CREAT, 0600) : -1;
  if (name != NULL && (file < 0 || ftruncate(file, 4096) != 0)) return MAP_FAILED;
  return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | (name == NULL ? MAP_ANONYMOUS : 0),
              file, 0);
}

static void** volatile kept;

int main(int count, char** arguments) {
  const int forks = count > 1 && strcmp(arguments[1], "fork") == 0;
  kept = forks ? calloc(100, sizeof *kept) : map(arguments[1]);
  if (kept == MAP_FAILED) return 1;
  if (forks) {
    const pid_t child = fork();
    if (child != 0) return waitpid(child, NULL, 0) == child ? 0 : 1;
  }
  hold(kept, forks ? 1000 : 4000);
  wipe_stack();
  char byte;
  if (write(1, "ready\n", 6) != 6) return 1;
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}
