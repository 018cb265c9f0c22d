// Threads that use the API at once: each has ids of its own, all share a few (which is misuse, and
// must stay counted right), savepoints come and go, notes are left, reports are written, and a
// signal handler does some of it in between. At the end what is live is known to the byte.
#include <atomic>
#include <thread>
#include <vector>

#include "mtrace.h"
#include "truth.h"

constexpr int kThreads = 4;
constexpr uint64_t kOwn = 1000;
constexpr uint64_t kShared = 8;

static std::atomic<long> g_handled{0};

static void handler(int) {
  mtrace_record("shared", 3, 64);
  mtrace_note_text("from a handler", 0);
  mtrace_release("shared", 3);
  ++g_handled;
}

static void work(int thread) {
  unsigned seed = static_cast<unsigned>(thread) + 1;
  for (int round = 0; round < 40; ++round) {
    for (uint64_t i = 0; i < kOwn; ++i) {
      const uint64_t id = static_cast<uint64_t>(thread) << 32 | i;
      check(mtrace_record("own", id, 10) == 0, "record");
      const uint64_t shared = static_cast<unsigned>(rand_r(&seed)) % kShared;
      if (i % 2 == 0) {
        mtrace_record("shared", shared, 16);
      } else {
        mtrace_release("shared", shared);
      }
    }
    const mtrace_savepoint savepoint = mtrace_savepoint_new();
    check(savepoint != 0, "savepoint");
    mtrace_save("of all threads");
    mtrace_compare("of all threads");
    check(mtrace_savepoint_free(savepoint) == 0, "free");
    mtrace_note("thread %d round %d", thread, round);
    if (round % 16 == 0) mtrace_report();
    // The last round's stay.
    for (uint64_t i = 0; i < kOwn && round != 39; ++i) {
      check(mtrace_release("own", static_cast<uint64_t>(thread) << 32 | i) == 0, "release");
    }
  }
}

int main() {
  mtrace_live_bytes();
  signal(SIGUSR2, handler);
  std::vector<std::thread> threads;
  std::atomic<bool> done{false};
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  std::thread sender([&] {
    while (!done) {
      kill(getpid(), SIGUSR2);
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  sender.join();
  // One release per id must be enough, however the threads met.
  for (uint64_t id = 0; id < kShared; ++id) mtrace_release("shared", id);
  for (uint64_t id = 0; id < kShared; ++id) {
    check(mtrace_release("shared", id) == -1, "an id that was live twice");
  }
  check(g_handled > 0, "no signal came");
  // One that no signal's notes leave without a place.
  mtrace_report();
  mtrace_note("all threads have ended");
  mtrace_report_label("end");
  return 0;
}
