// sampling STACKS BLOCKS [SIZE]: what MTRACE_SAMPLE has to estimate. STACKS call stacks (at most
// 4,096) do the same: BLOCKS blocks of each of four sizes, a report; then every second block is
// freed and another BLOCKS / 2 of each size are made, a report; then all are freed.
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mtrace.h"

enum { kSizes = 4 };
static size_t sizes[kSizes] = {0, 40, 700, 3000};

static void** g_next;

static inline __attribute__((always_inline)) void at_the_end(int count) {
  for (int i = 0; i < count * kSizes; ++i) *g_next++ = malloc(sizes[i % kSizes]);
}
#include "call_paths.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  for (int i = 0; argc > 3 && i < kSizes; ++i) sizes[i] = (size_t)atoi(argv[3]);
  const int stacks = atoi(argv[1]);
  const int count = atoi(argv[2]);
  const size_t most = (size_t)stacks * (size_t)count * 2 * kSizes;
  void** blocks =
      mmap(NULL, most * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (blocks == MAP_FAILED) return 3;
  g_next = blocks;
  for (int phase = 0; phase < 2; ++phase) {
    void** const end = g_next;
    for (void** block = blocks; block < end; ++block) {  // of each size every second one
      if ((block - blocks) / kSizes % 2 == 0) {
        free(*block);
        *block = NULL;
      }
    }
    for (int stack = 0; stack < stacks; ++stack) {
      go_on((unsigned)stack, 6, phase == 0 ? count : count / 2);
    }
    if (mtrace_report() < 0) return 4;
  }
  for (void** block = blocks; block < g_next; ++block) free(*block);
  return 0;
}
