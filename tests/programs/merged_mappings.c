// Lets malloc map a block of 5 MiB between 3 MiB and 2 MiB of the program's own: the kernel makes
// one mapping of the three. Writes to a part of each, prints where they begin, and waits for the
// end of its input. With "turns": two functions in turn map 43 neighbours of two pages each; those
// of the first have one page written, of the second both.
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

static void map_at(char* at, long written) {
  if (mmap(at, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
      at) {
    abort();
  }
  memset(at, 1, (size_t)(written * kPage));
}
__attribute__((noinline)) static void site_first(char* at) {
  map_at(at, 1);
  __asm__ volatile("");
}
__attribute__((noinline)) static void site_second(char* at) {
  map_at(at, 2);
  __asm__ volatile("");
}

static int wait_for_end(const void* begin) {
  char line[100];
  const int length = snprintf(line, sizeof line, "%p\nready\n", begin);
  if (write(1, line, (size_t)length) != length) return 1;
  while (read(0, line, 1) > 0) {
  }
  return 0;
}

static int in_turns(void) {
  char* const area = mmap(NULL, 45 * 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) abort();
  char* at = area + 2 * kPage;
  for (int i = 0; i < 43; ++i, at += 2 * kPage) i % 2 == 0 ? site_first(at) : site_second(at);
  return wait_for_end(area + 2 * kPage);
}

int main(int argc, char** argv) {
  (void)argv;
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  if (argc > 1) return in_turns();
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // and free() does not raise it
  char* block = block_between();
  for (int tries = 0; block == NULL && tries < kTries; ++tries) block = block_between();
  if (block == NULL) abort();
  char* const hole = block - 16;
  memset(hole - kBelow, 1, 50 * kPage);
  memset(block, 1, 100 * kPage - 16);
  memset(hole + kBlock, 1, 30 * kPage);
  const int status = wait_for_end(hole - kBelow);
  free(block);
  return status;
}
