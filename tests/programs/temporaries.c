// Blocks that are freed at once, in two reports. Of the stack of site_stays one block is left, of
// that of site_passes none, and site_crosses frees after the first report what it made before.
#include <signal.h>
#include <stdlib.h>

enum { kStays = 100000, kPasses = 100000, kLater = 1000, kCrosses = 10 };

__attribute__((noinline)) static void* site_stays(void) {
  void* block = malloc(24);
  __asm__ volatile("" ::: "memory");  // not a jump to malloc
  return block;
}

__attribute__((noinline)) static void* site_passes(void) {
  void* block = malloc(48);
  __asm__ volatile("" ::: "memory");
  return block;
}

__attribute__((noinline)) static void* site_crosses(void) {
  void* block = malloc(500);
  __asm__ volatile("" ::: "memory");
  return block;
}

static void* kept[kCrosses + 1];

int main(void) {
  // One call of each site, so that each has one stack.
  for (int i = 0; i <= kStays; ++i) {
    void* block = site_stays();
    if (i == kStays) {
      kept[kCrosses] = block;
    } else {
      free(block);
    }
  }
  for (int i = 0; i < kPasses + kLater; ++i) {
    if (i == kPasses - 1) {
      for (int k = 0; k < kCrosses; ++k) kept[k] = site_crosses();
    }
    if (i == kPasses) {
      raise(SIGUSR1);
      for (int k = 0; k < kCrosses; ++k) free(kept[k]);
    }
    free(site_passes());
  }
  return 0;
}
