// model SEED THREADS OPERATIONS PHASES: random allocations from 512 stacks, moved between threads,
// and a reference model of what each stack has done. After each phase, with all threads at rest,
// a report and the model's lines (with one thread and PHASES 0 neither):
//   stack PHASE PATH ALLOCS ALLOCATED FREES FREED TEMPORARY LIVE SLACK SHARE
// PATH is the number of the site, middle and outer function. SHARE is what the stack held at the
// peak, known with one thread and one phase; otherwise -1.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "mtrace.h"
#include "truth.h"

namespace {

constexpr unsigned kFanout = 8;
constexpr unsigned kPaths = kFanout * kFanout * kFanout;
constexpr size_t kHeld = 4096;    // blocks a thread holds at most
constexpr size_t kShared = 1024;  // blocks that any thread may take

struct Did {
  int64_t allocs = 0, allocated = 0, frees = 0, freed = 0, temporary = 0, live = 0, slack = 0;
  Did& operator+=(const Did& other) {
    allocs += other.allocs;
    allocated += other.allocated;
    frees += other.frees;
    freed += other.freed;
    temporary += other.temporary;
    live += other.live;
    slack += other.slack;
    return *this;
  }
};
using Model = absl::flat_hash_map<uint32_t, Did>;

struct Block {
  void* address;
  size_t size;
  uint32_t path;
};

enum class How { kMalloc, kCalloc, kAligned, kRealloc };
struct Request {
  How how;
  void* old;
  size_t size;
  void* result;
};

// A site asks for memory in one of four ways: four stacks that the test adds up.
void allocate(Request& request, unsigned) __attribute__((always_inline));
inline void allocate(Request& request, unsigned) {
  switch (request.how) {
    case How::kMalloc:
      request.result = malloc(request.size);
      break;
    case How::kCalloc:
      request.result = calloc(1, request.size);
      break;
    case How::kAligned:
      request.result = memalign(64, request.size);
      break;
    case How::kRealloc:
      request.result = realloc(request.old, request.size);
      break;
  }
}

using Level = void (*)(Request&, unsigned path);
#define EACH(make) make(0) make(1) make(2) make(3) make(4) make(5) make(6) make(7)
#define MAKE_SITE(n)                              \
  SITE void site_##n(Request& r, unsigned path) { \
    allocate(r, path);                            \
    NO_TAIL;                                      \
  }
EACH(MAKE_SITE)
#define NAME_SITE(n) site_##n,
constexpr Level kSites[] = {EACH(NAME_SITE)};
#define MAKE_MIDDLE(n)                              \
  SITE void middle_##n(Request& r, unsigned path) { \
    kSites[path % kFanout](r, path);                \
    NO_TAIL;                                        \
  }
EACH(MAKE_MIDDLE)
#define NAME_MIDDLE(n) middle_##n,
constexpr Level kMiddles[] = {EACH(NAME_MIDDLE)};
#define MAKE_OUTER(n)                              \
  SITE void outer_##n(Request& r, unsigned path) { \
    kMiddles[path / kFanout % kFanout](r, path);   \
    NO_TAIL;                                       \
  }
EACH(MAKE_OUTER)
#define NAME_OUTER(n) outer_##n,
constexpr Level kOuters[] = {EACH(NAME_OUTER)};

std::atomic<Block*> g_shared[kShared];  // entries point into arrays that nobody gives back
pthread_barrier_t g_barrier;
long g_operations;
int g_phases;

class Worker {
 public:
  explicit Worker(uint32_t seed) : random_(seed) {
    // Nothing but the sites allocates while operations run.
    held_.reserve(kHeld);
    spare_.reserve(kShared);
    cells_ = std::vector<Block>(kShared);
    for (Block& cell : cells_) spare_.push_back(&cell);
    model_.reserve(kPaths * 2);
    for (uint32_t path = 0; path < kPaths; ++path) model_[path] = {};
    at_peak_.assign(kPaths, 0);
  }

  void operate() {
    for (long i = 0; i < g_operations; ++i) {
      const unsigned choice = random_() % 100;
      if (held_.empty() || (choice < 45 && held_.size() < kHeld)) {
        held_.push_back(make(random_() % 3 == 0   ? How::kCalloc
                             : random_() % 9 == 0 ? How::kAligned
                                                  : How::kMalloc,
                             nullptr));
      } else if (choice < 55) {
        const size_t at = random_() % held_.size();
        const Block old = held_[at];
        // The new block is made and the old one gone at once: the old one first.
        Did& did = model_[old.path];
        did.slack -= slack(old);
        const Block fresh = make(How::kRealloc, &old);
        held_[at] = fresh;
      } else if (choice < 70) {
        swap_shared();
      } else {
        drop(take_held(choice < 80 ? held_.size() - 1 : random_() % held_.size()));
      }
    }
  }

  const Model& model() const { return model_; }
  // What was done is told as differences; levels go on.
  void begin_phase() {
    for (auto& [path, did] : model_)
      did.allocs = did.allocated = did.frees = did.freed = did.temporary = 0;
  }
  const std::vector<int64_t>& at_peak() const { return at_peak_; }

 private:
  static int64_t slack(const Block& block) {
    return static_cast<int64_t>(malloc_usable_size(block.address) - block.size);
  }

  Block make(How how, const Block* old) {
    const uint32_t path = random_() % kPaths;
    const size_t size = random_() % 50 == 0 ? 1 + random_() % 20000 : 1 + random_() % 200;
    Request request = {how, old != nullptr ? old->address : nullptr, size, nullptr};
    kOuters[path / kFanout / kFanout](request, path);
    const Block block = {request.result, size, path};
    if (old != nullptr) book_free(*old);
    Did& did = model_[path];
    ++did.allocs;
    did.allocated += static_cast<int64_t>(size);
    did.live += static_cast<int64_t>(size);
    did.slack += slack(block);
    last_ = block.address;
    total_ += static_cast<int64_t>(size);
    if (total_ > peak_ && g_phases == 1) {
      peak_ = total_;
      for (uint32_t p = 0; p < kPaths; ++p) at_peak_[p] = model_[p].live;
    }
    return block;
  }

  void book_free(const Block& block) {
    Did& did = model_[block.path];
    ++did.frees;
    did.freed += static_cast<int64_t>(block.size);
    did.live -= static_cast<int64_t>(block.size);
    total_ -= static_cast<int64_t>(block.size);
  }

  void drop(const Block& block) {
    book_free(block);
    Did& did = model_[block.path];
    did.slack -= slack(block);
    if (block.address == last_) {
      ++did.temporary;
      last_ = nullptr;
    }
    free(block.address);
  }

  Block take_held(size_t at) {
    const Block block = held_[at];
    held_[at] = held_.back();
    held_.pop_back();
    return block;
  }

  // Puts one of its blocks where others find it and takes what was there, to free it.
  void swap_shared() {
    if (spare_.empty()) return;
    Block* cell = spare_.back();
    spare_.pop_back();
    *cell = take_held(random_() % held_.size());
    Block* old = g_shared[random_() % kShared].exchange(cell);
    if (old == nullptr) return;
    spare_.push_back(old);
    drop(*old);
  }

  std::mt19937 random_;
  std::vector<Block> held_;
  std::vector<Block> cells_;
  std::vector<Block*> spare_;
  Model model_;
  const void* last_ = nullptr;
  int64_t total_ = 0;
  int64_t peak_ = 0;
  std::vector<int64_t> at_peak_;
};

std::vector<Worker*> g_workers;

void tell_model(int phase, bool exact_peak) {
  Model sum;
  for (const Worker* worker : g_workers) {
    for (const auto& [path, did] : worker->model()) sum[path] += did;
  }
  for (const auto& [path, did] : sum) {
    printf("stack %d %u %ld %ld %ld %ld %ld %ld %ld %ld\n", phase, path, did.allocs, did.allocated,
           did.frees, did.freed, did.temporary, did.live, did.slack,
           exact_peak ? g_workers[0]->at_peak()[path] : -1);
  }
  fflush(stdout);
}

void* run(void* argument) {
  auto* worker = static_cast<Worker*>(argument);
  for (int phase = 1; phase <= g_phases; ++phase) {
    worker->operate();
    pthread_barrier_wait(&g_barrier);
    pthread_barrier_wait(&g_barrier);
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto seed = static_cast<uint32_t>(atol(argv[1]));
  const int threads = atoi(argv[2]);
  g_operations = atol(argv[3]);
  g_phases = atoi(argv[4]);
  for (int i = 0; i < threads; ++i) g_workers.push_back(new Worker(seed * 100 + i));
  if (threads == 1) {
    g_workers[0]->operate();
    if (g_phases == 0) return 0;
    mtrace_report();
    tell_model(1, true);
    return 0;
  }
  pthread_barrier_init(&g_barrier, nullptr, threads + 1);
  std::vector<pthread_t> ids(threads);
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], nullptr, run, g_workers[i]);
  for (int phase = 1; phase <= g_phases; ++phase) {
    pthread_barrier_wait(&g_barrier);
    mtrace_report();
    tell_model(phase, false);
    for (Worker* worker : g_workers) worker->begin_phase();
    pthread_barrier_wait(&g_barrier);
  }
  for (const pthread_t id : ids) pthread_join(id, nullptr);
  return 0;
}
