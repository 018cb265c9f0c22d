// churn ROUNDS: threads allocate, resize and free at random, hand blocks to each other, and ask for
// reports all at once, by the API and by signal. In the end each site says what it holds.
#include <atomic>

#include "mtrace.h"
#include "truth.h"

namespace {

constexpr int kThreads = 4;
constexpr int kSlots = 256;

enum Maker { kMalloc, kRealloc, kNew, kAligned, kMakers };

struct Block {
  void* p = nullptr;
  long size = 0;
  Maker maker = kMalloc;
};

// Blocks that one thread leaves for another.
std::atomic<Block*> mailbox[16];
std::atomic<long> held_bytes[kMakers];
std::atomic<long> held_blocks[kMakers];
std::atomic<int> reports;
std::atomic<int> failed;
int rounds;

void hold(Maker maker, long size, int sign) {
  held_bytes[maker] += sign * size;
  held_blocks[maker] += sign;
}

}  // namespace

extern "C" {
GIVES(malloc, (size_t n), malloc(n))
GIVES(realloc, (void* p, size_t n), realloc(p, n))
GIVES(new, (size_t n), ::operator new(n))
GIVES(aligned, (size_t n), aligned_alloc(64, n))
}

namespace {

void drop(Block* block) {
  hold(block->maker, block->size, -1);
  if (block->maker == kNew) {
    ::operator delete(block->p);
  } else {
    free(block->p);
  }
  *block = Block();
}

void make(Block* block, unsigned seed) {
  const long size = 1 + static_cast<long>(seed % 4000);
  switch ((seed >> 13) % 3) {
    case 0:
      *block = {site_malloc(static_cast<size_t>(size)), size, kMalloc};
      break;
    case 1:
      *block = {site_new(static_cast<size_t>(size)), size, kNew};
      break;
    default: {
      const long rounded = (size + 63) / 64 * 64;
      *block = {site_aligned(static_cast<size_t>(rounded)), rounded, kAligned};
    }
  }
  hold(block->maker, block->size, 1);
}

void* work(void* number) {
  static thread_local Block slots[kSlots];
  unsigned seed = 12345u + 777u * static_cast<unsigned>(reinterpret_cast<size_t>(number));
  for (int round = 0; round < rounds; ++round) {
    seed = seed * 1664525u + 1013904223u;
    Block& block = slots[(seed >> 8) % kSlots];
    const unsigned action = (seed >> 20) % 8;
    if (block.p == nullptr) {
      make(&block, seed >> 4);
    } else if (action < 3 && block.maker != kNew) {
      const long size = 1 + static_cast<long>((seed >> 5) % 9000);
      void* q = site_realloc(block.p, static_cast<size_t>(size));
      if (q == nullptr) abort();
      hold(block.maker, block.size, -1);
      block = {q, size, kRealloc};
      hold(kRealloc, size, 1);
    } else if (action < 5) {
      auto* letter = new Block(block);
      block = Block();
      Block* other = mailbox[seed % 16].exchange(letter);
      if (other != nullptr) {
        drop(other);
        delete other;
      }
    } else {
      drop(&block);
    }
    if (round % (rounds / 10 + 1) == 0) {
      const int seq = round % 2 == 0 ? mtrace_report() : mtrace_report_label("churn");
      (seq > 0 ? reports : failed) += 1;
      if (truth_signals) raise(SIGUSR1);
    }
  }
  // The rest stays. What the slots held is remembered by the totals only.
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  rounds = argc > 1 ? atoi(argv[1]) : 10000;
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], nullptr, work, reinterpret_cast<void*>(i));
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  static const char* const kNames[] = {"site_malloc", "site_realloc", "site_new", "site_aligned"};
  for (int i = 0; i < kMakers; ++i) truth_add(kNames[i], held_bytes[i], held_blocks[i]);
  truth_signals = 0;
  tell(1);
  printf("reports %d failed %d\n", reports.load(), failed.load());
  return 0;
}
