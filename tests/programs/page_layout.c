// Heaps whose blocks lie as the seed (argument 1) says: the first, and a thread's. Prints each small
// block, "block SITE ADDRESS SIZE", then "ready", and waits for its input to end.
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>

#include "truth.h"

#define SITES 5
#define BLOCKS 6000

static struct {
  char* address;
  size_t size;
  int site;
} blocks[2][BLOCKS];
static uint64_t state;

static unsigned next(unsigned below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % below;
}

GIVES(0, (size_t size), malloc(size))
GIVES(1, (size_t size), malloc(size))
GIVES(2, (size_t size), malloc(size))
GIVES(3, (size_t size), malloc(size))
GIVES(4, (size_t size), malloc(size))
static void* (*const sites[SITES])(size_t) = {site_0, site_1, site_2, site_3, site_4};

// Sites take turns for some hundred blocks, so that some pages are of one site. Of large blocks only
// the beginning is written, so not every page is in memory.
__attribute__((noipa)) static void fill_heap(int heap) {
  int site = 0;
  for (int i = 0; i < BLOCKS; ++i) {
    if (next(100) == 0) site = (int)next(SITES);
    const int one = next(4) == 0 ? (int)next(SITES) : site;
    const size_t size = next(40) == 0 ? 20000 + next(60000) : 1 + next(700);
    char* block = sites[one](size);
    memset(block, 1, size < 3000 ? size : 100);
    blocks[heap][i].address = block;
    blocks[heap][i].size = size;
    blocks[heap][i].site = one;
  }
  for (int i = 0; i < BLOCKS; ++i) {
    if (next(10) >= 6) continue;
    free(blocks[heap][i].address);
    blocks[heap][i].address = NULL;
  }
}

static int filled;
static void* in_thread(void* unused) {
  fill_heap(1);
  __atomic_store_n(&filled, 1, __ATOMIC_RELEASE);
  for (;;) pause();
  return unused;
}

// 100 pages that the kernel does not join with others.
__attribute__((noipa)) static char* site_mapping(void) {
  char* pages = mmap(NULL, 102 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mprotect(pages + 4096, 100 * 4096, PROT_READ | PROT_WRITE) != 0) abort();
  return pages + 4096;
}

int main(int argc, char** argv) {
  state = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
  // What pthread_create allocates is on pages of its own, and what was freed before is used.
  pthread_t thread;
  pthread_create(&thread, NULL, in_thread, NULL);
  while (__atomic_load_n(&filled, __ATOMIC_ACQUIRE) == 0) sched_yield();
  void* volatile used;
  for (size_t size = 8; size < 1100; size += 16) {
    for (int i = 0; i < 7; ++i) used = malloc(size);
  }
  (void)used;
  const uintptr_t here = (uintptr_t)malloc(5000);
  const uintptr_t behind = here + 5008;  // the next block, from the top of the heap
  if ((uintptr_t)malloc(8192 - (behind & 4095)) != behind) abort();
  fill_heap(0);
  memset(site_mapping(), 1, 30 * 4096);
  char* large = site_0(3 << 20);
  memset(large, 1, 1 << 20);
  char line[100];
  for (int i = 0; i < 2 * BLOCKS; ++i) {
    if (blocks[i / BLOCKS][i % BLOCKS].address == NULL) continue;
    const int length = snprintf(line, sizeof line, "block %d %lu %zu\n",
                                blocks[i / BLOCKS][i % BLOCKS].site,
                                (unsigned long)blocks[i / BLOCKS][i % BLOCKS].address,
                                blocks[i / BLOCKS][i % BLOCKS].size);
    if (write(1, line, (size_t)length) != length) return 1;
  }
  if (write(1, "ready\n", 6) != 6) return 1;
  while (read(0, line, 1) > 0) {
  }
  return large == NULL;
}
