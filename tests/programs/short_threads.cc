// Thousands of threads, a few at a time, that live for some ninety operations: each allocates, and
// frees what others have left; every third is detached, and a report is asked for every now and
// then. What is left at the end is known.
#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "truth.h"

namespace {

constexpr unsigned kThreads = 2000;
constexpr unsigned kAtOnce = 8;
constexpr unsigned kOperations = 90;

struct Block {
  void* address;
  unsigned site;
  size_t size;
};
std::mutex g_lock;
std::vector<Block>* g_left;
std::atomic<unsigned> g_running{0};
std::atomic<unsigned> g_done{0};

}  // namespace

extern "C" {

GIVES(one, (size_t n), malloc(sized(n)))
GIVES(two, (size_t n), malloc(sized(n)))
GIVES(three, (size_t n), malloc(sized(n)))
// A realloc's block belongs to the realloc's site.
GIVES(four, (size_t n), realloc(malloc(sized(n / 2)), sized(n)))

}  // extern "C"

namespace {

constexpr struct {
  const char* name;
  void* (*allocate)(size_t);
} kSites[] = {{"site_one", site_one},
              {"site_two", site_two},
              {"site_three", site_three},
              {"site_four", site_four}};

void* live(void* seed) {
  std::minstd_rand random(static_cast<unsigned>(reinterpret_cast<uintptr_t>(seed)) + 1);
  for (unsigned i = 0; i < kOperations; ++i) {
    Block block = {};
    if (random() % 100 < 52) {
      block.site = random() % 4;
      block.size = 1 + random() % 5000;
      block.address = kSites[block.site].allocate(block.size);
      check(block.address != nullptr, "malloc");
      const std::lock_guard lock(g_lock);
      if (g_left->size() == g_left->capacity()) abort();
      g_left->push_back(block);
    } else {
      {
        const std::lock_guard lock(g_lock);
        if (!g_left->empty()) {
          block = g_left->back();
          g_left->pop_back();
        }
      }
      free(block.address);
    }
  }
  ++g_done;
  --g_running;
  return nullptr;
}

}  // namespace

int main() {
  g_left = new std::vector<Block>;
  g_left->reserve(kThreads * kOperations);
  std::vector<pthread_t> joinable;
  for (unsigned begun = 0; begun < kThreads;) {
    if (g_running >= kAtOnce) {
      std::this_thread::yield();
      continue;
    }
    ++g_running;
    pthread_t thread;
    void* const seed = reinterpret_cast<void*>(uintptr_t{begun});
    check(pthread_create(&thread, nullptr, live, seed) == 0, "pthread_create");
    if (begun % 3 == 0) {
      pthread_detach(thread);
    } else {
      joinable.push_back(thread);
    }
    if (joinable.size() == kAtOnce) {
      for (const pthread_t each : joinable) pthread_join(each, nullptr);
      joinable.clear();
    }
    if (++begun % 200 == 0) kill(getpid(), SIGUSR1);
  }
  for (const pthread_t each : joinable) pthread_join(each, nullptr);
  while (g_done < kThreads) std::this_thread::yield();
  for (const Block& block : *g_left) {
    truth_add(kSites[block.site].name, static_cast<long>(block.size), 1);
  }
  tell(1);
  return 0;
}
