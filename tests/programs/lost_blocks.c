// Loses a block of 1,008 bytes, and with it one of 504 that only it points to.
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) void wipe_stack(void) {
  volatile char room[16384];
  for (size_t i = 0; i < sizeof room; ++i) room[i] = 0;
}

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
