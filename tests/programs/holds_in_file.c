// Keeps the only pointer to a block in the file that its argument names, which it maps shared; without
// an argument, in anonymous shared memory. Waits for its input to end.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static __attribute__((noinline)) void hold(void** page) {
  page[5] = malloc(4000);
  memset(page[5], 0, 4000);
}

static __attribute__((noinline)) void wipe_stack(void) {
  volatile char room[16384];
  for (size_t i = 0; i < sizeof room; ++i) room[i] = 0;
}

int main(int count, char** arguments) {
  const int named = count > 1;
  const int file = named ? open(arguments[1], O_RDWR | O_CREAT, 0600) : -1;
  if (named && (file < 0 || ftruncate(file, 4096) != 0)) return 1;
  void** page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, named ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS,
                     file, 0);
  if (page == MAP_FAILED) return 1;
  hold(page);
  wipe_stack();
  puts("ready");
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}
