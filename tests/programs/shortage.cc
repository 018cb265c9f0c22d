// Makes much of everything that the library keeps: stacks, blocks, threads, modules, notes,
// resources, reports. Says what its sites hold (truth.h) and "fine". Argument 1 is the path of
// plugin_first.so. "shortage PLUGIN oom": then takes all memory that a limit of address space
// leaves.
#include <dlfcn.h>
#include <sys/resource.h>

#include "mtrace.h"
#include "truth.h"

namespace {

constexpr int kWays = 10;
constexpr int kStacks = 1 << kWays;
constexpr int kKept = 64;
constexpr int kBlocks = 3000;
void* kept_blocks[kBlocks];
void* kept_stacks[kStacks];
void* kept_thread[64];

}  // namespace

extern "C" {
SITE void site_stack(int n) {
  kept_stacks[n] = malloc(sized(static_cast<size_t>(1 + n % 7)));
  NO_TAIL;
}
SITE void site_block(int n) {
  kept_blocks[n] = malloc(sized(40));
  NO_TAIL;
}
SITE void site_thread(int n) {
  kept_thread[n] = malloc(sized(500));
  NO_TAIL;
}
SITE void site_huge() {
  free(malloc(sized(size_t{1} << 30)));
  NO_TAIL;
}
GIVES(greedy, (size_t size), malloc(sized(size)))
}

namespace {

inline void at_the_end(int n) { site_stack(n); }
#include "two_ways.h"

void* work(void*) {
  for (int i = 0; i < 64; ++i) site_thread(i);
  // On stacks that the first thread has met.
  for (int n = 0; n < kKept; ++n) {
    void* old = kept_stacks[n];
    choose(n, kWays);
    free(old);
  }
  return nullptr;
}

void make_much(const char* plugin_path) {
  // Most of them leave nothing behind, so that reports stay small.
  for (int n = 0; n < kStacks; ++n) {
    choose(n, kWays);
    if (n >= kKept) free(kept_stacks[n]);
  }
  for (int n = 0; n < kBlocks; ++n) site_block(n);
  mtrace_note("note %d", 1);
  mtrace_save("point");
  mtrace_record("thing", 1, 100);
  mtrace_report();
  pthread_t thread;
  check(pthread_create(&thread, nullptr, work, nullptr) == 0, "thread");
  pthread_join(thread, nullptr);
  void* plugin = dlopen(plugin_path, RTLD_NOW);
  check(plugin != nullptr, "plug-in");
  auto* allocate = reinterpret_cast<void* (*)(unsigned long)>(dlsym(plugin, "allocate"));
  void* block = allocate(300);
  dlclose(plugin);
  site_huge();
  mtrace_report_label("second");
  free(block);
  for (int n = 0; n < kBlocks; n += 2) free(kept_blocks[n]);
  mtrace_compare("point");
  mtrace_release("thing", 1);
  long stacks = 0;
  for (int n = 0; n < kKept; ++n) stacks += 1 + n % 7;
  truth_add("site_stack", stacks, kKept);
  truth_add("site_block", 40 * (kBlocks / 2), kBlocks / 2);
  truth_add("site_thread", 500 * 64, 64);
}

// All that a limit leaves, block by block, and less and less at a time.
void take_all() {
  char text[64] = "";
  const int file = open("/proc/self/statm", O_RDONLY);
  check(read(file, text, sizeof text - 1) > 0, "statm");
  close(file);
  const rlim_t limit = static_cast<rlim_t>(atol(text)) * 4096 + (24 << 20);
  const rlimit all = {limit, limit};
  check(setrlimit(RLIMIT_AS, &all) == 0, "limit");
  struct Link {
    Link* next;
  };
  Link* first = nullptr;
  long blocks = 0;
  long bytes = 0;
  for (size_t size = 1 << 20; size >= 64; size /= 4) {
    while (auto* link = static_cast<Link*>(site_greedy(size))) {
      link->next = first;
      first = link;
      ++blocks;
      bytes += static_cast<long>(size);
    }
  }
  truth_add("site_greedy", bytes, blocks);
  mtrace_report_label("none left");
  for (int n = 1; n < kBlocks; n += 2) free(kept_blocks[n]);
  truth_add("site_block", -40 * (kBlocks / 2), -(kBlocks / 2));
  // Room for the library's own again.
  for (long i = 0; i < blocks / 2; ++i) {
    Link* next = first->next;
    free(first);
    first = next;
  }
  mtrace_report_label("some left");
  while (first != nullptr) {
    Link* next = first->next;
    free(first);
    first = next;
  }
  truth_add("site_greedy", -bytes, -blocks);
}

}  // namespace

int main(int argc, char** argv) {
  make_much(argc > 1 ? argv[1] : "");
  if (argc > 2) take_all();
  tell(1);
  mtrace_report_label("end");
  puts("fine");
  return 0;
}
