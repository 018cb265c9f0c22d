// Loses a block of 1,008 bytes, and with it one of 504 that only it points to.
#include "truth.h"

static __attribute__((noinline)) void lose_plainly(void) {
  void** block = calloc(1, 1008);
  block[1] = calloc(1, 504);
  __asm__ volatile("" ::: "memory");
}

int main(void) {
  lose_plainly();
  wipe_stack();
  return 0;
}
