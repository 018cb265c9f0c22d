// event_storm ROUNDS: eight threads allocate, resize and free, mostly blocks that another thread
// allocated, and fork now and then. After each round all of them wait, and a report is written.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>

#include "mtrace.h"

namespace {

constexpr int kThreads = 8;
constexpr int kSlots = 512;
constexpr int kSteps = 4000;

std::atomic<void*> shared[kSlots];
int rounds;
std::barrier<> together(kThreads);

unsigned next(unsigned& seed) { return (seed = seed * 1664525u + 1013904223u) >> 8; }

void step(unsigned& seed) {
  const unsigned slot = next(seed) % kSlots;
  void* block = shared[slot].exchange(nullptr);
  const size_t size = next(seed) % 16 == 0 ? next(seed) % 200000 : next(seed) % 700;
  switch (next(seed) % 4) {
    case 0:
      free(block);
      block = nullptr;
      break;
    case 1:
      block = realloc(block, size + 1);
      break;
    case 2:
      free(block);
      block = ::operator new(size);
      break;
    default:
      free(block);
      block = calloc(1, size);
      break;
  }
  // Whoever was quicker leaves one over.
  free(shared[slot].exchange(block));
}

void fork_one(unsigned& seed) {
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 300; ++i) step(seed);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) abort();
}

void* work(void* argument) {
  const auto number = reinterpret_cast<long>(argument);
  unsigned seed = static_cast<unsigned>(number) + 1;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kSteps; ++i) step(seed);
    together.arrive_and_wait();
    if (number == 0) fork_one(seed);
    if (number == 0) mtrace_report();
    together.arrive_and_wait();
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], nullptr, work, reinterpret_cast<void*>(i));
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  std::puts("done");
  return 0;
}
