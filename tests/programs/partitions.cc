// A program with an allocator of its own, as browsers have: malloc is one way in, and the program
// itself goes in by others, under names that nobody knows. One lock for all of it, which a thread
// must not take twice. Arguments: who waits in a system call, "worker" or "nobody". The first
// thread allocates all the time. Ends with status 5 at the end of its input, or at SIGTERM.
#include <poll.h>
#include <sched.h>
#include <stdint.h>

#include <atomic>

#include "truth.h"

namespace {

alignas(16) char arena[64 << 20];
size_t used;
std::atomic<int> locked{0};
std::atomic<int> over{0};

void spend(unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) asm volatile("pause");
}

// Slow on purpose: a thread that is stopped is most likely here.
__attribute__((noinline)) void* partition_enter(size_t size, unsigned work) {
  while (locked.exchange(1, std::memory_order_acquire) != 0) sched_yield();
  spend(work);
  char* block = nullptr;
  size = (size + 31) & ~size_t{15};
  if (size <= sizeof arena - used) {
    block = arena + used;
    used += size;
    *reinterpret_cast<size_t*>(block) = size - 16;
    block += 16;
  }
  if (work != 0) used -= size;  // the program's own is short-lived
  locked.store(0, std::memory_order_release);
  return block;
}

void* look_on(void* wait) {
  if (wait != nullptr) {
    pollfd input = {0, POLLIN, 0};
    poll(&input, 1, -1);
    over = 1;
  }
  return nullptr;
}

}  // namespace

extern "C" {
void* malloc(size_t size) {
  void* block = partition_enter(size, 0);
  if (block == nullptr) errno = ENOMEM;
  return block;
}
void free(void*) {}
void* calloc(size_t count, size_t size) { return malloc(count * size); }  // never used before
void* realloc(void* old, size_t size) {
  void* block = malloc(size);
  if (old == nullptr || block == nullptr) return block;
  const size_t held = static_cast<size_t*>(old)[-2];
  return memcpy(block, old, held < size ? held : size);
}
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool waits = strcmp(argv[1], "worker") == 0;
  pthread_t thread;
  pthread_create(&thread, nullptr, look_on, waits ? argv : nullptr);
  signal(SIGTERM, [](int) { over = 1; });
  print("ready");
  while (over == 0) {
    partition_enter(100, 4000);
    spend(1000);
  }
  pthread_join(thread, nullptr);
  return 5;
}
