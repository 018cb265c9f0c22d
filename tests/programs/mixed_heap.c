/* A heap of pairs of a small block and a large one: mixed_heap PAIRS SMALL LARGE EVERY. LARGE 0:
 * none. EVERY: of so many pairs one is kept; then the others are freed, and a report is written. 1:
 * all are kept. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const long pairs = atol(argv[1]);
  const size_t small = atol(argv[2]);
  const size_t large = atol(argv[3]);
  const long every = atol(argv[4]);
  char** const blocks = calloc(2 * pairs + 1, sizeof *blocks);
  if (blocks == NULL) abort();
  for (long i = 0; i < pairs; ++i) {
    blocks[2 * i] = memset(malloc(small), 1, small);
    if (large != 0) blocks[2 * i + 1] = memset(malloc(large), 1, large);
  }
  for (long i = 0; i < pairs; ++i) {
    if (i % every == 0) continue;
    free(blocks[2 * i]);
    free(blocks[2 * i + 1]);
  }
  if (every > 1) raise(SIGUSR1);
  return 0;
}
