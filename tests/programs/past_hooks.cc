// Children of a busy process in which a block was freed past the hooks, as a library that is bound
// to libc's own free does: its memory is gone, but the library still knows it.
#include <atomic>
#include <thread>
#include <vector>

#include "truth.h"

extern "C" void __libc_free(void* block);

int main() {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) free(malloc(sized(100)));
    });
  }
  __libc_free(malloc(sized(1 << 20)));  // a mapping of its own
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      free(malloc(sized(10)));
      _exit(0);
    }
    check(reap(child) == 0, "a child");
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  puts("good");
  return 0;
}
