// Forks N times (argument 1) while threads allocate, resize, free and come and go. Each child
// allocates at a site, frees it in part, reports at its end, and exits 0.
#include <atomic>

#include "truth.h"

namespace {
std::atomic<bool> stop;

void* work(void*) {
  void* blocks[32] = {};
  unsigned seed = static_cast<unsigned>(reinterpret_cast<size_t>(&blocks) >> 4);
  for (int round = 0; !stop; ++round) {
    seed = seed * 1664525u + 1013904223u;
    const unsigned i = seed >> 27;
    const size_t size = 1 + (seed >> 12) % 3000;
    if (blocks[i] == nullptr) {
      blocks[i] = malloc(sized(size));
    } else if (seed & 0x800) {
      blocks[i] = realloc(blocks[i], sized(size));
    } else {
      free(blocks[i]);
      blocks[i] = nullptr;
    }
  }
  for (void* block : blocks) free(block);
  return nullptr;
}

void* short_lived(void*) {
  while (!stop) {
    pthread_t thread;
    pthread_create(
        &thread, nullptr, [](void*) -> void* { return malloc(sized(10)); }, nullptr);
    void* block;
    pthread_join(thread, &block);
    free(block);
  }
  return nullptr;
}
}  // namespace

extern "C" SITE void site_child() {
  void* volatile a = malloc(sized(123));
  void* volatile b = malloc(sized(77));
  free(b);
  fill(a, 123);
}

int main(int argc, char** argv) {
  const int forks = argc > 1 ? atoi(argv[1]) : 10;
  pthread_t threads[4];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], nullptr, work, nullptr);
  pthread_create(&threads[3], nullptr, short_lived, nullptr);
  int good = 0;
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      site_child();
      _exit(0);
    }
    const int status = reap(child);
    if (status == 0) ++good;
  }
  stop = true;
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  printf("good %d\n", good);
  return 0;
}
