// Blocks of 20 and of 5,000 bytes from one call of malloc, ten of each. Asks for a report with all
// of them, and ends with those of 20 bytes.
#include <stdlib.h>

#include "mtrace.h"

static void* g_blocks[20];

int main(void) {
  for (int i = 0; i < 20; ++i) g_blocks[i] = malloc(i < 10 ? 20 : 5000);
  mtrace_report();
  for (int i = 10; i < 20; ++i) free(g_blocks[i]);
  return 0;
}
