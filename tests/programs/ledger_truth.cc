// ledger_truth FILE THREADS: allocates, resizes and frees at random until it is killed, and keeps
// in FILE, mapped shared, what each thread's site holds: before and after the operation under way.
#include "ledger_truth.h"

#include <sys/mman.h>

#include <atomic>
#include <random>

#include "truth.h"

namespace {

constexpr int kSlots = 300;
LedgerTruth* truth;

}  // namespace

extern "C" {
GIVES(0, (void* p, size_t n), realloc(p, n))
GIVES(1, (void* p, size_t n), realloc(p, n))
GIVES(2, (void* p, size_t n), realloc(p, n))
GIVES(3, (void* p, size_t n), realloc(p, n))
}

namespace {

void* work(void* argument) {
  const auto number = static_cast<int>(reinterpret_cast<long>(argument));
  void* (*const sites[])(void*, size_t) = {site_0, site_1, site_2, site_3};
  LedgerTruth::Thread& own = truth->threads[number];
  std::mt19937 random(static_cast<unsigned>(getpid() * 31 + number));
  void* blocks[kSlots] = {};
  long sizes[kSlots] = {};
  LedgerTruth::Held held = {};
  for (;;) {
    const unsigned slot = random() % kSlots;
    const long size = 1 + random() % (random() % 64 == 0 ? 100000 : 200);
    const bool frees = blocks[slot] != nullptr && random() % 3 == 0;
    LedgerTruth::Held next = held;
    if (blocks[slot] != nullptr) {
      next.bytes -= sizes[slot];
      next.blocks -= 1;
    }
    if (!frees) {
      next.bytes += size;
      next.blocks += 1;
    }
    own.after = next;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    own.busy = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (frees) {
      free(blocks[slot]);
      blocks[slot] = nullptr;
    } else {
      blocks[slot] = sites[number](blocks[slot], size);
      sizes[slot] = size;
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    own.busy = 2;  // `after` holds, `before` is being written
    std::atomic_signal_fence(std::memory_order_seq_cst);
    own.before = held = next;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    own.busy = 0;
    own.operations = own.operations + 1;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int file = open(argv[1], O_RDWR);
  truth = static_cast<LedgerTruth*>(
      mmap(nullptr, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  check(truth != MAP_FAILED, "the file of truth");
  for (long number = 0; number < atoi(argv[2]); ++number) {
    pthread_t thread;
    pthread_create(&thread, nullptr, work, reinterpret_cast<void*>(number));
  }
  print("go");
  for (;;) pause();
}
