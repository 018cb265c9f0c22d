/* One call reaches two functions of malloc, another maps memory in two forms: each is one stack
 * with two entries. Bytes at each report:
 *
 *   report                              1        2        3
 *   site_blocks, aligned_alloc      40960    40960    40960
 *                calloc              3000     3500     3500
 *   site_mappings, rw-             262144   262144   327680
 *                  r--             131072   196608   196608
 *   site_peak, freed again         100000        -        -
 *
 * The peak is in the time of report 1. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mtrace.h"

enum { kUnit = 65536 };

static void check(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

static void* kept[8];
static int count;

__attribute__((noipa)) static void site_blocks(void* (*allocate)(size_t, size_t), size_t first,
                                               size_t second) {
  kept[count++] = allocate(first, second);
}
__attribute__((noipa)) static void site_mappings(size_t size, int protection) {
  void* p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(p != MAP_FAILED, "a mapping");
}
__attribute__((noipa)) static void site_peak(size_t size) {
  void* volatile p = malloc(size);
  free(p);
}

/* One place calls each site, so that each has one stack: volatile keeps the loop. */
__attribute__((noipa)) static void step(size_t aligned, size_t zeroed, size_t writable,
                                        size_t read_only) {
  void* (*const functions[2])(size_t, size_t) = {aligned_alloc, calloc};
  const size_t bytes[2] = {aligned, zeroed};
  const size_t sizes[2] = {writable, read_only};
  const int protections[2] = {PROT_READ | PROT_WRITE, PROT_READ};
  for (volatile int i = 0; i < 2; ++i) {
    if (bytes[i] != 0) site_blocks(functions[i], i == 0 ? 64 : 1, bytes[i]);
    if (sizes[i] != 0) site_mappings(sizes[i], protections[i]);
  }
}

int main(void) {
  static const size_t kSteps[3][4] = {
      {40960, 3000, 4 * kUnit, 2 * kUnit}, {0, 500, 0, kUnit}, {0, 0, kUnit, 0}};
  for (int report = 1; report <= 3; ++report) {
    const size_t* const sizes = kSteps[report - 1];
    step(sizes[0], sizes[1], sizes[2], sizes[3]);
    if (report == 1) site_peak(100000);
    check(mtrace_report() == report, "a report");
  }
  return 0;
}
