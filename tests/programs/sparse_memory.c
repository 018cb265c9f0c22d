// sparse_memory TIB [BYTES...]: reserves so many TiB of address space, writes a mebibyte of it in
// pages far from each other, reads as many pages, and takes aligned blocks of so many bytes of
// which it writes the first and a middle page. Prints "ready", and ends when it has read a line.
// Lost is one block of 1,000 bytes; one of 2,000 is held from the middle of what was reserved, one
// of 3,000 from the middle of each large block.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kPage = 4096, kPages = 256, kPieces = 8 };

static void** volatile kept[64];
static void* volatile gone;

static void* filled(size_t bytes) {
  void* block = malloc(bytes);
  memset(block, 7, bytes);
  return block;
}

static void clear_stack(void) {
  char unused[16384];
  memset(unused, 0, sizeof unused);
  __asm__ volatile("" : : "r"(unused) : "memory");
}

static void lose(void) {
  gone = filled(1000);
  gone = NULL;
}

int main(int argc, char** argv) {
  // In pieces: programs lie in the middle of the address space.
  const size_t size = ((size_t)(argc > 1 ? atol(argv[1]) : 0) << 40) / kPieces;
  const size_t step = size == 0 ? 2 * kPage : size / kPages / kPage * kPage;
  volatile char sum = 0;
  char* sparse = NULL;
  for (int piece = 0; piece < kPieces; ++piece) {
    sparse = mmap(NULL, step * kPages, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sparse == MAP_FAILED) {
      perror("mmap");
      return 1;
    }
    for (int i = 0; i < kPages / kPieces; ++i) {
      sparse[(size_t)i * step] = 1;
      sum += sparse[(size_t)i * step + step / 2];
    }
  }
  *(void**)(sparse + step + 64) = filled(2000);
  for (int i = 2; i < argc; ++i) {
    const size_t bytes = (size_t)atoll(argv[i]);
    char* block = aligned_alloc(kPage, bytes);
    if (block == NULL) {
      perror("aligned_alloc");
      return 1;
    }
    block[0] = 1;
    *(void**)(block + bytes / 2 / kPage * kPage + 64) = filled(3000);
    kept[i - 2] = (void**)block;
  }
  lose();
  clear_stack();
  puts("ready");
  fflush(stdout);
  (void)getchar();
  return 0;
}
