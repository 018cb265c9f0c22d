// Threads that allocate at sites of their own; other threads free part of it. Single steps are
// ordered by joins, so what each site holds is known. See truth.h.
#include "truth.h"

namespace {

constexpr int kThreads = 8;
constexpr int kBlocks = 2000;
void* blocks[kThreads][kBlocks];

size_t size_of(int thread, int block) { return static_cast<size_t>(1 + thread * 100 + block % 97); }

void put(int thread, int block, void* p) {
  check(p != nullptr, "malloc");
  blocks[thread][block] = p;
}

}  // namespace

extern "C" {

#define THREAD_SITE(n)                                                 \
  SITE void* site_thread_##n(void*) {                                  \
    for (int i = 0; i < kBlocks; ++i) {                                \
      put(n, i, malloc(sized(size_of(n, i))));                         \
      if (i % 3 == 0) put(n, i, realloc(blocks[n][i], size_of(n, i))); \
    }                                                                  \
    return nullptr;                                                    \
  }
#define EACH(make) make(0) make(1) make(2) make(3) make(4) make(5) make(6) make(7)
EACH(THREAD_SITE)

// All threads at once allocate at one site.
SITE void* site_shared(void* kept) {
  void** list = static_cast<void**>(kept);
  for (int i = 0; i < kBlocks; ++i) {
    list[i] = malloc(sized(40));
    free(malloc(sized(41)));
  }
  return nullptr;
}

}  // extern "C"

namespace {

// Frees the odd blocks of the next thread.
void* free_neighbours(void* number) {
  const int next = (static_cast<int>(reinterpret_cast<long>(number)) + 1) % kThreads;
  for (int i = 1; i < kBlocks; i += 2) free(blocks[next][i]);
  return nullptr;
}

template <typename Start>
void run_all(Start start) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) start(&threads[i], i);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
}

void* shared_blocks[kThreads][kBlocks];

}  // namespace

int main(int argc, char** argv) {
  begin(argc, argv);
#define SITE_OF(n) site_thread_##n,
#define NAME_OF(n) "site_thread_" #n,
  static void* (*const kSites[])(void*) = {EACH(SITE_OF)};
  static const char* const kNames[] = {EACH(NAME_OF)};
  run_all([](pthread_t* thread, int i) { pthread_create(thread, nullptr, kSites[i], nullptr); });
  for (int n = 0; n < kThreads; ++n) {
    for (int i = 0; i < kBlocks; ++i) {
      truth_add(kNames[n], static_cast<long>(size_of(n, i)), 1);
    }
  }
  tell(1);

  run_all([](pthread_t* thread, long i) {
    pthread_create(thread, nullptr, free_neighbours, reinterpret_cast<void*>(i));
  });
  for (int n = 0; n < kThreads; ++n) {
    for (int i = 1; i < kBlocks; i += 2) {
      truth_add(kNames[n], -static_cast<long>(size_of(n, i)), -1);
    }
  }
  tell(2);

  run_all([](pthread_t* thread, int i) {
    pthread_create(thread, nullptr, site_shared, shared_blocks[i]);
  });
  truth_add("site_shared", 40L * kThreads * kBlocks, kThreads * kBlocks);
  tell(3);
  return 0;
}
