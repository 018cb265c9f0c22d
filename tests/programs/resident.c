/* Memory of several kinds, all of it resident: mapped without a name (24 MiB), the file of the
 * first argument (24 MiB), executable memory (20 MiB), and malloc's in large and in small blocks (8
 * MiB each). With "sbrk" as the argument: 20 MiB by sbrk, between blocks of malloc. With "sbrk"
 * and N: N times 16 KiB by sbrk or brk, with malloc's growth in between. */
#include <malloc.h>
#include <sys/mman.h>

#include "truth.h"

enum { kMiB = 1 << 20 };

static void* keep[70000];

static void take_often(int times) {
  mallopt(M_TOP_PAD, 0);
  // What is given back becomes malloc's.
  for (int i = 0; i < 2000; ++i) {
    check(sbrk(kMiB) != (void*)-1, "sbrk");
    check(sbrk(-kMiB) != (void*)-1, "sbrk");
  }
  for (int i = 0; i < times; ++i) {
    char* const taken = sbrk(0);
    if (i % 2 == 0) {
      check(sbrk(16 << 10) == taken, "sbrk");
    } else {
      check(brk(taken + (16 << 10)) == 0, "brk");
    }
    memset(taken, 1, 16 << 10);
    for (int j = 0; j < 2; ++j) {
      keep[2 * i + j] = malloc(5000);
      memset(keep[2 * i + j], 1, 5000);
    }
  }
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "sbrk") == 0) {
    take_often(atoi(argv[2]));
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "sbrk") == 0) {
    for (int i = 0; i < 1000; ++i) keep[i] = malloc(1008);
    for (int i = 0; i < 2; ++i) {
      void* const taken = sbrk(10 * kMiB);
      check(taken != (void*)-1, "sbrk");
      memset(taken, 1, 10 * kMiB);
      for (int j = 0; j < 1000; ++j) keep[1000 + i * 1000 + j] = malloc(1008);
    }
    return 0;
  }
  const int both = PROT_READ | PROT_WRITE;
  check(argc == 2, "usage: resident FILE");
  void* const unnamed = mmap(NULL, 24 * kMiB, both, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(unnamed != MAP_FAILED, "mmap");
  memset(unnamed, 1, 24 * kMiB);
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  check(file >= 0 && ftruncate(file, 24 * kMiB) == 0, argv[1]);
  void* const mapped = mmap(NULL, 24 * kMiB, both, MAP_SHARED, file, 0);
  check(mapped != MAP_FAILED, "mmap of the file");
  memset(mapped, 1, 24 * kMiB);
  void* const code = mmap(NULL, 20 * kMiB, both | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(code != MAP_FAILED, "mmap of code");
  memset(code, 0xc3, 20 * kMiB);
  for (int i = 0; i < 8; ++i) {
    keep[i] = malloc(kMiB);
    memset(keep[i], 1, kMiB);
  }
  for (int i = 8; i < 8 + 8 * 1024; ++i) {
    keep[i] = malloc(1008);
    memset(keep[i], 1, 1008);
  }
  return 0;
}
