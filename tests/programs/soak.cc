// soak SEED OPERATIONS PLUGIN: a random program. A random number of threads allocate, resize and
// free by every function there is, hand blocks to each other, fork, load and unload (PLUGIN: the
// path of plugin_first.so), and ask for reports. Each process counts for itself what it does at
// each site and says so at its end: "ledger PID SITE:BYTES:BLOCKS ...".
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <new>

#include "mtrace.h"
#include "truth.h"

namespace {

constexpr unsigned kSites = 12;
constexpr unsigned kMailboxes = 64;
constexpr unsigned kHeld = 500;
constexpr unsigned kMostThreads = 8;

struct Block {
  void* p;
  size_t size;
  unsigned site;
  bool by_new;
};

struct {
  std::atomic<long> bytes;
  std::atomic<long> blocks;
} ledger[kSites];
std::atomic<Block*> mailboxes[kMailboxes];
unsigned seed_of_all;
long operations;
const char* plugin_path;

void hold(const Block& block, int sign) {
  ledger[block.site].bytes += sign * static_cast<long>(block.size);
  ledger[block.site].blocks += sign;
}

void tell_ledger() {
  char line[2048];
  int size = snprintf(line, sizeof line, "ledger %d", static_cast<int>(getpid()));
  for (unsigned site = 0; site < kSites; ++site) {
    size += snprintf(line + size, sizeof line - static_cast<size_t>(size), " site_%u:%ld:%ld", site,
                     ledger[site].bytes.load(), ledger[site].blocks.load());
  }
  line[size++] = '\n';
  check(write(1, line, static_cast<size_t>(size)) == size, "line");
}

}  // namespace

extern "C" {
#define SIMPLE_SITE(number, call)                    \
  SITE void* site_##number(void* old, size_t size) { \
    (void)old;                                       \
    void* block = call;                              \
    NO_TAIL;                                         \
    return block;                                    \
  }
SIMPLE_SITE(0, malloc(size))
SIMPLE_SITE(1, calloc(1, size))
SIMPLE_SITE(2, realloc(old, size))
SIMPLE_SITE(3, reallocarray(old, 1, size))
SIMPLE_SITE(4, memalign(64, size))
SIMPLE_SITE(5, valloc(size))
SIMPLE_SITE(6, ::operator new(size))
SIMPLE_SITE(7, ::operator new[](size, std::nothrow))
SIMPLE_SITE(8, calloc(size, 1))
SIMPLE_SITE(10, realloc(old, size))
SITE void* site_9(void* old, size_t size) {
  void* block = nullptr;
  (void)old;
  check(posix_memalign(&block, 128, size) == 0, "posix_memalign");
  NO_TAIL;
  return block;
}
SITE void* site_11(void* old, size_t size) {
  (void)old;
  void* block = aligned_alloc(32, size);
  NO_TAIL;
  return block;
}
}

namespace {

using Site = void* (*)(void*, size_t);
constexpr Site kSite[kSites] = {site_0, site_1, site_2, site_3, site_4,  site_5,
                                site_6, site_7, site_8, site_9, site_10, site_11};
bool resizes(unsigned site) { return site == 2 || site == 3 || site == 10; }
bool is_new(unsigned site) { return site == 6 || site == 7; }

class Worker {
 public:
  explicit Worker(unsigned seed) : seed_(seed * 2654435761u + 1) {}

  void work(long count) {
    for (long i = 0; i < count; ++i) {
      const unsigned choice = next() % 1000;
      if (choice < 550) {
        make(held_[next() % kHeld]);
      } else if (choice < 850) {
        drop(held_[next() % kHeld]);
      } else if (choice < 985) {
        hand_over(held_[next() % kHeld]);
      } else if (choice < 990) {
        load();
      } else if (i % 25 == 0) {
        rarely();
      }
    }
  }
  void release() {
    for (Block& block : held_) drop(block);
  }

 private:
  unsigned next() { return (seed_ = seed_ * 1664525u + 1013904223u) >> 8; }
  size_t some_size() {
    const unsigned kind = next() % 100;
    return kind < 70 ? 1 + next() % 256 : kind < 98 ? 1 + next() % 8192 : 1 + next() % 400000;
  }

  void make(Block& place) {
    const unsigned site = next() % kSites;
    const bool old = place.p != nullptr && resizes(site) && !place.by_new;
    if (!old) drop(place);
    const Block before = place;
    place.size = some_size();
    if (site == 11) place.size = (place.size + 31) / 32 * 32;
    place.p = kSite[site](old ? before.p : nullptr, place.size);
    check(place.p != nullptr, "memory");
    place.site = site;
    place.by_new = is_new(site);
    if (old) hold(before, -1);
    hold(place, 1);
    static_cast<volatile char*>(place.p)[place.size - 1] = 1;
  }
  void drop(Block& block) {
    if (block.p == nullptr) return;
    hold(block, -1);
    if (block.by_new && block.site == 7) {
      ::operator delete[](block.p);
    } else if (block.by_new) {
      ::operator delete(block.p);
    } else {
      free(block.p);
    }
    block.p = nullptr;
  }
  void hand_over(Block& block) {
    if (block.p == nullptr) return;
    Block* mine = static_cast<Block*>(malloc(sizeof(Block)));
    *mine = block;
    block.p = nullptr;
    Block* other = mailboxes[next() % kMailboxes].exchange(mine);
    if (other == nullptr) return;
    drop(*other);
    free(other);
  }
  void load() {
    void* plugin = dlopen(plugin_path, RTLD_NOW);
    check(plugin != nullptr, "plug-in");
    auto* allocate = reinterpret_cast<void* (*)(unsigned long)>(dlsym(plugin, "allocate"));
    void* outlives = allocate(1 + next() % 100);
    if (next() % 2 == 0) dlclose(plugin);
    free(outlives);
  }
  void rarely() {
    switch (next() % 4) {
      case 0:
        if (truth_signals) raise(SIGUSR1);
        break;
      case 1:
        if (truth_signals) kill(getpid(), SIGUSR1);
        break;
      case 2:
        mtrace_report_label("soak");
        break;
      default:
        fork_one();
    }
  }
  void fork_one() {
    static std::atomic<int> children;
    if (generation_ >= 2 || ++children > 6) return;
    const pid_t child = fork();
    if (child == 0) {
      ++generation_;
      for (auto& site : ledger) site.bytes = site.blocks = 0;
      seed_ += 99;
      work(2000);
      tell_ledger();
      _exit(0);
    }
    int status = -1;
    while (waitpid(child, &status, 0) == -1) {
    }
    check(status == 0, "child");
  }

  unsigned seed_;
  int generation_ = 0;
  Block held_[kHeld] = {};
};

void* run(void* number) {
  auto* worker = new Worker(seed_of_all + static_cast<unsigned>(reinterpret_cast<size_t>(number)));
  worker->work(operations);
  if (reinterpret_cast<size_t>(number) % 2 == 0) worker->release();
  return worker;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  seed_of_all = static_cast<unsigned>(atol(argv[1]));
  operations = atol(argv[2]);
  plugin_path = argv[3];
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  const unsigned threads = seed_of_all * 7 % (kMostThreads + 1);
  pthread_t ids[kMostThreads];
  for (unsigned i = 0; i < threads; ++i) {
    check(pthread_create(&ids[i], nullptr, run, reinterpret_cast<void*>(size_t{i} + 1)) == 0,
          "thread");
  }
  run(nullptr);
  for (unsigned i = 0; i < threads; ++i) pthread_join(ids[i], nullptr);
  tell_ledger();
  return 0;
}
