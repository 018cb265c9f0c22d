// A variable holds a block of 104 bytes that holds one of 208; nothing holds a block of 312 bytes,
// which holds one of 416. A block of 520 bytes is freed. Prints their addresses and waits for the
// end of its input.
#include "truth.h"

void** g_root;

static __attribute__((noipa)) void** make(size_t size, size_t inner_size, char* line) {
  void** const block = calloc(1, size);
  block[5] = calloc(1, inner_size);
  snprintf(line, 50, "%p %p\n", (void*)block, block[5]);
  return block;
}

static __attribute__((noipa)) void make_and_free(char* line) {
  void* const block = malloc(520);
  snprintf(line, 50, "%p\n", block);
  free(block);
}

static __attribute__((noipa)) void say(void) {
  char lines[3][50];
  g_root = make(104, 208, lines[0]);
  make(312, 416, lines[1]);
  make_and_free(lines[2]);
  for (int i = 0; i < 3; ++i) {
    if (write(1, lines[i], strlen(lines[i])) < 0) abort();
  }
  memset(lines, 0, sizeof lines);
}

int main(void) {
  say();
  wipe_stack();
  char byte;
  if (write(1, "ready\n", 6) != 6) return 1;
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}
