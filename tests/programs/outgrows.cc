// outgrows THREADS BLOCKS: each thread makes BLOCKS blocks of many sizes at thousands of call
// stacks, reallocates some and frees others, some of which are another thread's. Then a report,
// then all are freed, a report. What stands in the table of blocks when the tables are full
// is freed before, during and after.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "mtrace.h"

namespace {

constexpr size_t kSizes[] = {0, 24, 100, 500, 700, 3000, 40'000};
thread_local void* made;

void at_the_end(int size) { made = malloc(kSizes[size]); }
#include "call_paths.h"

struct Worker {
  std::vector<std::atomic<void*>> blocks;
  explicit Worker(size_t count) : blocks(count) {}
};

void work(std::vector<Worker>& workers, size_t self) {
  std::vector<std::atomic<void*>>& own = workers[self].blocks;
  std::vector<std::atomic<void*>>& other = workers[(self + 1) % workers.size()].blocks;
  for (size_t i = 0; i < own.size(); ++i) {
    go_on(static_cast<unsigned>(i * 2654435761u >> 14), 7, static_cast<int>(i % 7));
    own[i] = made;
    void* const old = i % 3 == 0 ? own[i / 2].exchange(nullptr) : nullptr;
    if (old != nullptr) own[i / 2] = realloc(old, kSizes[i % 6] + 1);
    if (i % 5 == 0) free(other[i / 3].exchange(nullptr));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t count = strtoul(argv[2], nullptr, 10);
  std::vector<Worker> workers;
  workers.reserve(8);
  for (long i = 0; i < std::clamp(atol(argv[1]), 1l, 8l); ++i) workers.emplace_back(count);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < workers.size(); ++i) {
    threads.emplace_back([&workers, i] { work(workers, i); });
  }
  work(workers, 0);
  for (std::thread& thread : threads) thread.join();
  if (mtrace_report() < 0) return 3;
  for (Worker& worker : workers) {
    for (std::atomic<void*>& block : worker.blocks) free(block);
  }
  return mtrace_report() < 0 ? 4 : 0;
}
