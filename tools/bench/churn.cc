// The benchmark's own program. Prints nanoseconds of processor time for one pair of malloc and free
// (growth: for one realloc), without the preparation.
//
//   churn pairs THREADS DEPTH PAIRS           one stack, DEPTH nested calls (5, 12 or 40)
//   churn mix THREADS STACKS LIVE PAIRS       of LIVE blocks a thread, one drawn at random is freed
//                                             and a new one made by one of STACKS stacks, 12 deep
//   churn paths STACKS DEPTH LIVE PAIRS       the same, each stack a random path of DEPTH calls
//                                             through 20 functions with frames of different sizes
//   churn handoff PAIRS                       one thread allocates, another frees
//   churn growth ROUNDS                       blocks that grow from 16 bytes to 64 KiB by realloc
//
// Built as `news` its pairs are of operator new and the sized operator delete, for the count of
// instructions alone: linked with libstdc++, the others would count other numbers.
//
// For bench_serve.py: churn stacks COUNT keeps a block of each of COUNT stacks, says "ready", then
// frees and makes one of them at each byte of input, until its end.
#include <pthread.h>
#include <time.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "calls.h"

namespace {

constexpr int kMostThreads = 64;

struct Work {
  long pairs = 0;
  unsigned stacks = 1;
  unsigned live = 0;
  unsigned depth = 0;
  unsigned seed = 1;
  double nanoseconds = 0;
};

class Stopwatch {
 public:
  Stopwatch() : begin_(now()) {}
  double nanoseconds() const { return now() - begin_; }

 private:
  static double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  }
  double begin_;
};

// ---- pairs

template <int Depth>
NEST void nested(long pairs) {
  if constexpr (Depth > 1) {
    nested<Depth - 1>(pairs);
    DISTINCT(nested);
  } else {
    for (long i = 0; i < pairs; ++i) {
      const auto size = static_cast<size_t>(16 + i % 512);
#ifdef NEWS
      void* volatile p = operator new(size);
      operator delete(p, size);
#else
      void* volatile p = malloc(size);
      free(p);
#endif
    }
  }
}

template <int Depth>
void* run_pairs(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  const Stopwatch watch;
  nested<Depth>(work.pairs);
  work.nanoseconds = watch.nanoseconds();
  return nullptr;
}

// ---- mix

// Two bits of the path a level choose the call site.
constexpr int kLevels = 9;
constexpr unsigned kPaths = 1u << (2 * kLevels);

template <int Level>
NEST void* descend(unsigned path, size_t size) {
  void* block;
  if constexpr (Level == 0) {
    block = malloc(size);
    DISTINCT(leaf);
  } else {
    switch (path & 3) {
      case 0:
        block = descend<Level - 1>(path >> 2, size);
        DISTINCT(0);
        break;
      case 1:
        block = descend<Level - 1>(path >> 2, size);
        DISTINCT(1);
        break;
      case 2:
        block = descend<Level - 1>(path >> 2, size);
        DISTINCT(2);
        break;
      default:
        block = descend<Level - 1>(path >> 2, size);
        DISTINCT(3);
    }
  }
  return block;
}

NEST void* make(const Work& work, Random& random) {
  // Odd, so that different numbers give different paths, which differ at every level.
  const unsigned path = random() % work.stacks * 0x9e3779b1u % kPaths;
  void* block = descend<kLevels>(path, 16 + random() % 112);
  DISTINCT(make);
  return block;
}

// ---- paths

constexpr unsigned kHops = 20;
constexpr unsigned kDeepestPath = 200;
constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;
using Hop = void*(uint64_t path, unsigned left, size_t size);

// The next function of a path, chosen by the upper bits.
unsigned next_hop(uint64_t path) { return static_cast<unsigned>((path >> 32) * kHops >> 32); }

template <unsigned Number>
NEST void* hop(uint64_t path, unsigned left, size_t size);
template <unsigned... Numbers>
constexpr auto hops_of(std::integer_sequence<unsigned, Numbers...>) {
  return std::array<Hop*, sizeof...(Numbers)>{hop<Numbers>...};
}
constexpr auto kHopTable = hops_of(std::make_integer_sequence<unsigned, kHops>());

template <unsigned Number>
NEST void* hop(uint64_t path, unsigned left, size_t size) {
  char room[8 + Number % 7 * 16];
  __asm__ volatile("" ::"r"(room) : "memory");
  void* block;
  if (left == 0) {
    block = malloc(size);
    DISTINCT(leaf);
  } else {
    path = path * kSpread + 1;
    block = kHopTable[next_hop(path)](path, left - 1, size);
    DISTINCT(hop);
  }
  return block;
}

NEST void* make_by_path(const Work& work, Random& random) {
  const uint64_t path = (random() % work.stacks + 1) * kSpread;
  void* block = kHopTable[next_hop(path)](path, work.depth - 1, 16 + random() % 112);
  DISTINCT(make_by_path);
  return block;
}

// ---- mix and paths

template <void* Make(const Work&, Random&)>
void* run_mix(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  Random random{0x9e3779b97f4a7c15u * work.seed};
  auto** blocks = static_cast<void**>(calloc(work.live, sizeof(void*)));
  for (unsigned i = 0; i < work.live; ++i) blocks[i] = Make(work, random);
  const Stopwatch watch;
  for (long i = 0; i < work.pairs; ++i) {
    void*& block = blocks[random() % work.live];
    free(block);
    block = Make(work, random);
  }
  work.nanoseconds = watch.nanoseconds();
  for (unsigned i = 0; i < work.live; ++i) free(blocks[i]);
  free(blocks);
  return nullptr;
}

// ---- handoff

// Whole batches go from one thread to the other, so that waking up does not count.
constexpr int kBatch = 512;
constexpr int kBatches = 8;
struct Queue {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  long made = 0;  // batches
  long taken = 0;
  void* blocks[kBatches][kBatch] = {};
} queue;

// Waits until the number of batches under way is at least or below; then counts one.
template <typename Condition>
void wait_for(Condition condition) {
  pthread_mutex_lock(&queue.mutex);
  while (!condition()) pthread_cond_wait(&queue.changed, &queue.mutex);
  pthread_mutex_unlock(&queue.mutex);
}
void count(long& batches) {
  pthread_mutex_lock(&queue.mutex);
  ++batches;
  pthread_cond_signal(&queue.changed);
  pthread_mutex_unlock(&queue.mutex);
}

void* run_producer(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  const Stopwatch watch;
  Random random{0x9e3779b97f4a7c15u};
  for (long batch = 0; batch < work.pairs / kBatch; ++batch) {
    wait_for([&] { return batch - queue.taken < kBatches; });
    for (void*& block : queue.blocks[batch % kBatches]) block = make(work, random);
    count(queue.made);
  }
  work.nanoseconds = watch.nanoseconds();
  return nullptr;
}

void* run_consumer(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  const Stopwatch watch;
  for (long batch = 0; batch < work.pairs / kBatch; ++batch) {
    wait_for([&] { return queue.made > batch; });
    for (void* block : queue.blocks[batch % kBatches]) free(block);
    count(queue.taken);
  }
  work.nanoseconds = watch.nanoseconds();
  return nullptr;
}

// ---- growth

NEST void* grow(void* block, size_t size) {
  void* grown = realloc(block, size);
  DISTINCT(grow);
  return grown;
}

double run_growth(long rounds) {
  constexpr size_t kMost = 64 * 1024;
  long calls = 0;
  const Stopwatch watch;
  for (long round = 0; round < rounds; ++round) {
    // Two that stand in each other's way.
    void* blocks[2] = {};
    for (size_t size = 16; size <= kMost; size += size / 2) {
      for (void*& block : blocks) {
        block = grow(block, size);
        memset(block, 1, 16);
        ++calls;
      }
    }
    for (void* block : blocks) free(block);
  }
  return watch.nanoseconds() / static_cast<double>(calls);
}

// ---- stacks

int keep_stacks(unsigned count) {
  auto** kept = static_cast<void**>(calloc(count, sizeof(void*)));
  for (unsigned i = 0; i < count; ++i) kept[i] = descend<kLevels>(i, 16 + i % 500);
  puts("ready");
  fflush(stdout);
  for (unsigned i = 0; getchar() != EOF; ++i) {
    free(kept[i % count]);
    kept[i % count] = descend<kLevels>(i % count, 16 + i % 700);
  }
  return 0;
}

// ----

// Runs one function a thread, a single one on the main thread; the mean of what a pair took.
double run(int threads, void* (*const* functions)(void*), const Work& work) {
  static Work works[kMostThreads];
  for (int i = 0; i < threads; ++i) {
    works[i] = work;
    works[i].seed = static_cast<unsigned>(i) + 1;
  }
  if (threads == 1) {
    functions[0](works);
  } else {
    pthread_t started[kMostThreads];
    for (int i = 0; i < threads; ++i) {
      if (pthread_create(&started[i], nullptr, functions[i], &works[i]) != 0) abort();
    }
    for (int i = 0; i < threads; ++i) pthread_join(started[i], nullptr);
  }
  double nanoseconds = 0;
  for (int i = 0; i < threads; ++i) nanoseconds += works[i].nanoseconds;
  return nanoseconds / static_cast<double>(work.pairs);
}

double run_same(int threads, void* (*function)(void*), const Work& work) {
  void* (*functions[kMostThreads])(void*);
  for (auto& each : functions) each = function;
  return run(threads, functions, work) / threads;
}

int usage() {
  fputs(
      "churn pairs THREADS DEPTH PAIRS | mix THREADS STACKS LIVE PAIRS | "
      "paths STACKS DEPTH LIVE PAIRS | handoff PAIRS | growth ROUNDS | stacks COUNT\n",
      stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return i < argc ? atol(argv[i]) : 0; };
  const auto is = [&](const char* name, int words) {
    return argc == words + 2 && strcmp(argv[1], name) == 0 && number(2) > 0 &&
           number(words + 1) > 0;
  };
  double nanoseconds;
  if (is("pairs", 3) && number(2) <= kMostThreads) {
    const int threads = static_cast<int>(number(2));
    const Work work = {.pairs = number(4)};
    switch (number(3)) {
      case 5:
        nanoseconds = run_same(threads, run_pairs<5>, work);
        break;
      case 12:
        nanoseconds = run_same(threads, run_pairs<12>, work);
        break;
      case 40:
        nanoseconds = run_same(threads, run_pairs<40>, work);
        break;
      default:
        return usage();
    }
  } else if (is("mix", 4) && number(2) <= kMostThreads && number(3) > 0 && number(3) <= kPaths &&
             number(4) > 0) {
    nanoseconds = run_same(static_cast<int>(number(2)), run_mix<make>,
                           {.pairs = number(5),
                            .stacks = static_cast<unsigned>(number(3)),
                            .live = static_cast<unsigned>(number(4))});
  } else if (is("paths", 4) && number(3) > 0 && number(3) <= kDeepestPath && number(4) > 0) {
    nanoseconds = run_same(1, run_mix<make_by_path>,
                           {.pairs = number(5),
                            .stacks = static_cast<unsigned>(number(2)),
                            .live = static_cast<unsigned>(number(4)),
                            .depth = static_cast<unsigned>(number(3))});
  } else if (is("handoff", 1)) {
    void* (*const functions[])(void*) = {run_producer, run_consumer};
    nanoseconds = run(2, functions, {.pairs = number(2) / kBatch * kBatch, .stacks = 100});
  } else if (is("growth", 1)) {
    nanoseconds = run_growth(number(2));
  } else if (is("stacks", 1)) {
    return keep_stacks(static_cast<unsigned>(number(2)));
  } else {
    return usage();
  }
  printf("%.2f\n", nanoseconds);
  return 0;
}
