// event_forks ROUNDS [quiet|reports]: eight threads allocate, resize and free, mostly blocks that
// another thread allocated. After each round the main thread forks; with an argument they wait
// meanwhile. A child reports, frees and allocates, forks a child of its own that does the same, and
// reports again; with "reports" it only frees and allocates, and the parent reports.
#include <atomic>
#include <barrier>

#include "mtrace.h"
#include "truth.h"

namespace {

constexpr int kThreads = 8;
constexpr int kSlots = 512;
constexpr int kSteps = 4000;  // of each thread in a round

std::atomic<void*> shared[kSlots];
std::atomic<bool> ends;
bool quiet;
bool reports;
std::barrier<> together(kThreads + 1);

unsigned next(unsigned& seed) { return (seed = seed * 1664525u + 1013904223u) >> 8; }

void step(unsigned& seed) {
  const unsigned slot = next(seed) % kSlots;
  void* block = shared[slot].exchange(nullptr);
  const size_t size = next(seed) % 16 == 0 ? next(seed) % 200000 : next(seed) % 700;
  const unsigned what = next(seed) % 4;
  if (what == 1) {
    block = realloc(block, size + 1);
  } else {
    free(block);
    block = what == 0 ? nullptr : what == 2 ? ::operator new(size) : calloc(1, size);
  }
  // Whoever was quicker leaves one over.
  free(shared[slot].exchange(block));
}

void fork_one(unsigned seed, int generations) {
  const pid_t child = fork();
  if (child == 0) {
    if (!reports) mtrace_report();
    for (int i = 0; i < 300; ++i) step(seed);
    if (generations > 0) fork_one(seed + 1, generations - 1);
    if (reports) _exit(0);
    mtrace_report();
    exit(0);
  }
  const int status = reap(child);
  if (status != 0) abort();
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
  const int rounds = argc > 1 ? atoi(argv[1]) : 3;
  quiet = argc > 2;
  reports = quiet && strcmp(argv[2], "reports") == 0;
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], nullptr, work, reinterpret_cast<void*>(i));
  }
  for (int i = 0; i < rounds; ++i) {
    together.arrive_and_wait();
    fork_one(static_cast<unsigned>(100 + i), reports ? 0 : 1);
    if (reports) mtrace_report();
    ends = i + 1 == rounds;
    if (quiet) together.arrive_and_wait();
  }
  // In a storm the threads may be in a round more.
  for (pthread_t thread : threads) pthread_detach(thread);
  print("done");
  _exit(0);
}
