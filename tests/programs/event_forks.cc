// event_forks FORKS [quiet]: six threads allocate, resize and free, mostly blocks that another
// thread allocated, while the main thread forks; with "quiet" they wait during each fork. A child
// reports, frees and allocates, forks a child of its own that does the same, and reports again.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mtrace.h"

namespace {

constexpr int kThreads = 6;
constexpr int kSlots = 256;
constexpr int kSteps = 2000;  // between two forks

std::atomic<void*> shared[kSlots];
std::atomic<bool> ends;
bool quiet;
std::barrier<> together(kThreads + 1);

unsigned next(unsigned& seed) { return (seed = seed * 1664525u + 1013904223u) >> 8; }

void step(unsigned& seed) {
  const unsigned slot = next(seed) % kSlots;
  void* block = shared[slot].exchange(nullptr);
  const size_t size = next(seed) % 700;
  if (next(seed) % 3 == 0) {
    block = realloc(block, size + 1);
  } else {
    free(block);
    block = ::operator new(size);
  }
  free(shared[slot].exchange(block));
}

void be_child(unsigned seed, int generations) {
  mtrace_report();
  for (int i = 0; i < 300; ++i) step(seed);
  if (generations > 0) {
    const pid_t child = fork();
    if (child == 0) {
      be_child(seed + 1, generations - 1);
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) abort();
  }
  mtrace_report();
}

void* work(void* argument) {
  unsigned seed = static_cast<unsigned>(reinterpret_cast<long>(argument)) + 1;
  while (!ends) {
    for (int i = 0; i < kSteps; ++i) step(seed);
    together.arrive_and_wait();
    if (quiet) together.arrive_and_wait();
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const int forks = argc > 1 ? std::atoi(argv[1]) : 3;
  quiet = argc > 2 && std::strcmp(argv[2], "quiet") == 0;
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], nullptr, work, reinterpret_cast<void*>(i));
  }
  for (int i = 0; i < forks; ++i) {
    together.arrive_and_wait();
    const pid_t child = fork();
    if (child == 0) {
      be_child(static_cast<unsigned>(100 + i), 1);
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) abort();
    ends = i + 1 == forks;
    if (quiet) together.arrive_and_wait();
  }
  // In a storm the threads may be in a round more.
  for (pthread_t thread : threads) pthread_detach(thread);
  std::puts("done");
  std::fflush(stdout);
  _exit(0);
}
