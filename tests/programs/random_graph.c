// Blocks that point to each other as the seed (argument 1) says: some are held by variables, some
// lost, some by pointers into the middle only. Says "ready", and waits for its input to end.
#include <stdint.h>

#include "truth.h"

#define BLOCKS 400
#define ROOTS 25

static void* volatile roots[ROOTS];
static uintptr_t hidden[BLOCKS];  // complements of addresses: no pointers
static size_t sizes[BLOCKS];
static uint64_t state;

static unsigned next(unsigned below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % below;
}

// To the beginning of a block, or one in six to a word in its middle.
static uintptr_t pointer_to(unsigned block) {
  const size_t words = sizes[block] / 8;
  const uintptr_t address = ~hidden[block];
  return next(6) == 0 ? address + 8 * (1 + next((unsigned)words - 1)) : address;
}

__attribute__((noipa)) static void build(void) {
  for (int i = 0; i < BLOCKS; ++i) {
    sizes[i] = 8 * (2 + next(40));
    void* block = malloc(sizes[i]);
    memset(block, 0, sizes[i]);
    hidden[i] = ~(uintptr_t)block;
  }
  for (int i = 0; i < BLOCKS; ++i) {
    for (unsigned left = next(3); left != 0; --left) {
      volatile uintptr_t* words = (volatile uintptr_t*)~hidden[i];
      words[next((unsigned)(sizes[i] / 8))] = pointer_to(next(BLOCKS));
    }
  }
  for (int i = 0; i < ROOTS; ++i) roots[i] = (void*)pointer_to(next(BLOCKS));
}

int main(int argc, char** argv) {
  state = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
  build();
  wipe_stack();
  char byte;
  if (write(1, "ready\n", 6) != 6) return 1;
  while (read(0, &byte, 1) > 0) {
  }
  exit(0);
}
