/* Maps, touches and unmaps known sizes between reports. Argument 1: a file to map, which is made.
 *
 *   report                          1    2    3    4
 *   site_first, MiB mapped         40   40   40   40
 *               MiB resident        8   24    4    4
 *   site_second, mapped, resident   0   16    0    0
 *   the file, mapped, resident      4    4    4    0
 *   blocks of malloc, resident      0    0    8    8 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mtrace.h"

enum { kMiB = 1 << 20 };

static void check(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

/* Without huge pages, which would make more than what is touched resident. */
#define SITE(name)                                                                          \
  __attribute__((noipa)) static char* name(size_t size) {                                   \
    char* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); \
    check(p != MAP_FAILED && madvise(p, size, MADV_NOHUGEPAGE) == 0, "anonymous memory");   \
    return p;                                                                               \
  }
SITE(site_first)
SITE(site_second)

__attribute__((noipa)) static char* site_file(const char* path, size_t size) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  check(file >= 0 && ftruncate(file, (off_t)size) == 0, path);
  char* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  check(p != MAP_FAILED, "the file's memory");
  close(file);
  return p;
}

static char* blocks[8];

int main(int argc, char** argv) {
  check(argc == 2, "usage: map_phases FILE");
  char* const first = site_first(40 * kMiB);
  char* const mapped = site_file(argv[1], 4 * kMiB);
  memset(first, 1, 8 * kMiB);
  memset(mapped, 1, 4 * kMiB);
  check(mtrace_report_label("one") == 1, "report 1");

  char* const second = site_second(16 * kMiB);
  memset(first, 1, 24 * kMiB);
  memset(second, 1, 16 * kMiB);
  check(mtrace_report_label("two") == 2, "report 2");

  check(madvise(first + 4 * kMiB, 20 * kMiB, MADV_DONTNEED) == 0, "madvise");
  check(munmap(second, 16 * kMiB) == 0, "munmap");
  for (int i = 0; i < 8; ++i) {
    blocks[i] = malloc(kMiB);
    memset(blocks[i], 1, kMiB);
  }
  check(mtrace_report_label("three") == 3, "report 3");

  check(munmap(mapped, 4 * kMiB) == 0, "munmap of the file");
  check(mtrace_report_label("four") == 4, "report 4");
  return 0;
}
