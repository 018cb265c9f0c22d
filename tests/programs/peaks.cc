// A program that knows its own peak where it is hard to know. It prints "peak BYTES".
//
//   peaks limits     threads that come one after the other go up together by as much as each keeps
//   peaks alternate  one large block at a time, now here, now there, while others look all the time
//   peaks course     one large block stays, and reports find little more, and little less, beside
//   it peaks fork       a child comes to the height at which the parent's peak once stood
#include <malloc.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "mtrace.h"
#include "truth.h"

GIVES(large, (size_t size), malloc(size))
GIVES(here, (size_t size), malloc(size))
GIVES(there, (size_t size), malloc(size))

static int limits() {
  constexpr size_t kLarge = 128 << 20;
  constexpr int kThreads = 16;
  void* large = site_large(kLarge);
  std::barrier together(kThreads + 1);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    std::atomic<bool> here{false};
    const size_t keeps = kLarge / 1024 / static_cast<size_t>(t + 2);
    threads.emplace_back([&, keeps] {
      void* told = site_here(2 * keeps);
      here = true;
      together.arrive_and_wait();
      void* kept = site_there(keeps - 600);
      together.arrive_and_wait();  // the peak is here
      together.arrive_and_wait();
      free(kept);
      free(told);
    });
    while (!here) std::this_thread::yield();
  }
  together.arrive_and_wait();
  together.arrive_and_wait();
  printf("peak %zu\n", mtrace_live_bytes());
  together.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  free(large);
  mtrace_report();
  return 0;
}

static int alternate() {
  constexpr size_t kLarge = 16 << 20;
  // From the heap, as that is quick.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::atomic<bool> done{false};
  std::thread thread([&] {
    while (!done) {
      free(site_here(kLarge));
      free(site_there(kLarge));
    }
  });
  while (mtrace_peak_bytes() < kLarge) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) {
    for (int j = 0; j < 500; ++j) mtrace_peak_bytes();
    if (i % 10 == 0) mtrace_report();
  }
  done = true;
  thread.join();
  printf("peak %zu\n", kLarge);
  mtrace_report();
  check(mtrace_peak_bytes() < kLarge + kLarge / 2, "the peak is too high");
  return 0;
}

// A second thread, so that what is allocated here is not published at once.
static int course() {
  std::barrier together(2);
  std::thread thread([&] {
    free(site_here(1));
    together.arrive_and_wait();
    together.arrive_and_wait();
  });
  together.arrive_and_wait();
  void* large = site_large(10'000'000);
  mtrace_report();
  for (int i = 0; i < 4; ++i) {
    void* here = site_here(100);
    void* there = site_there(50);
    mtrace_report();
    free(there);
    mtrace_report();
    free(here);
    mtrace_report();
  }
  together.arrive_and_wait();
  thread.join();
  free(large);
  return 0;
}

static int fork_at_height() {
  void* stays = site_here(600);
  free(site_here(400));  // the peak: what site_here held then is set aside
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    void* more = site_there(400);  // as high again
    mtrace_report();
    free(more);
    _exit(0);
  }
  check(reap(child) == 0, "the child");
  free(stays);
  printf("child %d\n", static_cast<int>(child));
  return 0;
}

int main(int argc, char** argv) {
  mtrace_live_bytes();
  setvbuf(stdout, nullptr, _IONBF, 0);
  if (argc != 2) return 2;
  if (strcmp(argv[1], "limits") == 0) return limits();
  if (strcmp(argv[1], "alternate") == 0) return alternate();
  if (strcmp(argv[1], "course") == 0) return course();
  if (strcmp(argv[1], "fork") == 0) return fork_at_height();
  return 2;
}
