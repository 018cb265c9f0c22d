// Lets malloc map a block of 5 MiB between 3 MiB and 2 MiB of the program's own: the kernel makes
// one mapping of the three. Writes to a part of each, prints where they begin, and waits for the
// end of its input.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { kPage = 4096, kBelow = 3 << 20, kBlock = (5 << 20) + kPage, kAbove = 2 << 20, kTries = 256 };

// Leaves a hole that only the block fits into, and fills higher ones until malloc takes it. NULL:
// something else has taken it.
static char* block_between(void) {
  char* const area = mmap(NULL, kBelow + kBlock + kAbove + 2 * kPage, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* const below = area + kPage;
  char* const hole = below + kBelow;
  if (area == MAP_FAILED || munmap(hole, kBlock) != 0) abort();
  char* elsewhere[kTries];
  int count = 0;
  char* block = malloc(5 << 20);
  while (block != hole + 16 && count < kTries) {
    elsewhere[count++] = block;
    block = malloc(5 << 20);
  }
  while (count > 0) free(elsewhere[--count]);
  if (block != hole + 16) {
    free(block);
    return NULL;
  }
  if (mprotect(below, kBelow, PROT_READ | PROT_WRITE) != 0 ||
      mprotect(hole + kBlock, kAbove, PROT_READ | PROT_WRITE) != 0) {
    abort();
  }
  return block;
}

int main(void) {
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // and free() does not raise it
  char* block = block_between();
  for (int tries = 0; block == NULL && tries < kTries; ++tries) block = block_between();
  if (block == NULL) abort();
  char* const hole = block - 16;
  memset(hole - kBelow, 1, 50 * kPage);
  memset(block, 1, 100 * kPage - 16);
  memset(hole + kBlock, 1, 30 * kPage);
  char line[100];
  const int length = snprintf(line, sizeof line, "%p\nready\n", (void*)(hole - kBelow));
  if (write(1, line, (size_t)length) != length) return 1;
  while (read(0, line, 1) > 0) {
  }
  free(block);
  return 0;
}
