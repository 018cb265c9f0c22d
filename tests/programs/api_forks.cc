// Forks while threads record and release. In a child, whatever the vanished threads were at, each
// resource is counted as often as it can be released: releasing all of them leaves nothing.
#include <atomic>
#include <thread>
#include <vector>

#include "mtrace.h"
#include "truth.h"

constexpr uint64_t kThreads = 3;
constexpr uint64_t kIds = 50;

static std::atomic<bool> g_done{false};
static std::atomic<uint64_t> g_rounds{0};

static void work(uint64_t thread) {
  for (uint64_t i = 0; !g_done; ++i) {
    mtrace_record("own", thread << 32 | i % kIds, 10);
    mtrace_record("shared", i % 3, 7);
    if (i % 2 == 0) mtrace_release("own", thread << 32 | (i + kIds / 2) % kIds);
    ++g_rounds;
  }
}

static int child() {
  for (uint64_t id = 0; id < 3; ++id) {
    mtrace_release("shared", id);
    // A thread that vanished between its two looks may have left the id twice.
    mtrace_release("shared", id);
  }
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    for (uint64_t id = 0; id < kIds; ++id) mtrace_release("own", thread << 32 | id);
  }
  check(mtrace_report() == 1, "report");
  _exit(0);
}

int main() {
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (int i = 0; i < 40; ++i) {
    const uint64_t before = g_rounds;
    while (g_rounds == before) std::this_thread::yield();
    const pid_t pid = fork();
    if (pid == 0) child();
    check(reap(pid) == 0, "a child");
  }
  g_done = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}
