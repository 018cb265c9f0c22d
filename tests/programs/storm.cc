// storm REPORTS PLUGIN [SEED]: threads that allocate, fork, load and unload (PLUGIN: the path of
// plugin_first.so), throw, jump, switch contexts, and run on alternate stacks of 16 KiB and stacks
// of 64 KiB, each of them hit by SIGUSR1 again and again, as fast as it goes, until there are so
// many reports. Then says what its sites hold.
#include <dlfcn.h>
#include <setjmp.h>
#include <ucontext.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "mtrace.h"
#include "truth.h"

namespace {

std::atomic<bool> stop;
std::atomic<long> done[8];
unsigned first_seed;
const char* plugin_path;

unsigned next(unsigned& seed) { return (seed = seed * 1664525u + 1013904223u) >> 8; }

// What the blocks of a site amount to. The last ones are kept.
struct Site {
  std::atomic<long> bytes;
  std::atomic<long> blocks;
  struct {
    void* p;
    size_t size;
  } last[512];
  unsigned next;
  void add(long size, long count) {
    bytes += size;
    blocks += count;
  }
  // By one thread alone.
  void keep(void* p, size_t size) {
    auto& place = last[next++ % 512];
    if (place.p != nullptr) add(-static_cast<long>(place.size), -1);
    free(place.p);
    place = {p, size};
    add(static_cast<long>(size), 1);
  }
};
Site churned, thrown, jumped, switched, handled, small;

}  // namespace

extern "C" {
GIVES(churn, (void* old, size_t size), realloc(old, size))
SITE void site_throw(unsigned seed) {
  thrown.keep(malloc(sized(10 + seed % 50)), 10 + seed % 50);
  const std::string text(100 + seed % 100, 't');
  if (seed % 4 != 0) throw std::runtime_error(text);
}
SITE void site_jump(jmp_buf& place, unsigned seed) {
  jumped.keep(malloc(sized(10 + seed % 60)), 10 + seed % 60);
  longjmp(place, 1);
}
SITE void site_context(unsigned seed) {
  switched.keep(malloc(sized(10 + seed % 70)), 10 + seed % 70);
  NO_TAIL;
}
SITE void site_small(unsigned seed) {
  free(malloc(sized(1000 + seed % 1000)));
  small.keep(malloc(sized(10 + seed % 30)), 10 + seed % 30);
  NO_TAIL;
}
SITE void site_child() {
  free(malloc(sized(2000)));
  void* block = malloc(sized(123));
  asm volatile("" : : "r"(block) : "memory");
}
}

namespace {

void churn(unsigned seed) {
  struct {
    void* p = nullptr;
    size_t size = 0;
  } blocks[256];
  while (!stop) {
    auto& block = blocks[next(seed) % 256];
    if (block.p != nullptr) churned.add(-static_cast<long>(block.size), -1);
    if (block.p != nullptr && next(seed) % 3 == 0) {
      free(block.p);
      block = {};
    } else {
      block.size = 1 + next(seed) % 3000;
      block.p = site_churn(block.p, block.size);
      churned.add(static_cast<long>(block.size), 1);
    }
    ++done[0];
  }
}

void fork_children(unsigned seed) {
  for (int i = 0; i < 12 && !stop; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      site_child();
      if (next(seed) % 2 == 0) raise(SIGUSR1);
      _exit(0);
    }
    int status = -1;
    while (waitpid(child, &status, 0) == -1) {
    }
    check(status == 0, "child");
    ++done[1];
  }
  while (!stop) sched_yield();
}

void load(unsigned) {
  while (!stop) {
    void* plugin = dlopen(plugin_path, RTLD_NOW);
    check(plugin != nullptr, "plug-in");
    auto* allocate = reinterpret_cast<void* (*)(unsigned long)>(dlsym(plugin, "allocate"));
    free(allocate(300));
    void* outlives = allocate(5);
    dlclose(plugin);
    free(outlives);
    ++done[2];
  }
}

void throw_and_catch(unsigned seed) {
  while (!stop) {
    try {
      site_throw(next(seed));
    } catch (const std::runtime_error& error) {
      check(strlen(error.what()) >= 100, "what()");
    }
    ++done[3];
  }
}

void jump(unsigned first) {
  static thread_local unsigned seed;
  seed = first;
  jmp_buf place;
  while (!stop) {
    if (setjmp(place) == 0) site_jump(place, next(seed));
    ++done[4];
  }
}

thread_local ucontext_t outside;
thread_local ucontext_t fiber;
void run_fiber(unsigned seed) {
  for (;;) {
    site_context(next(seed));
    swapcontext(&fiber, &outside);
  }
}
void switch_contexts(unsigned seed) {
  static char stack[16384];
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = stack;
  fiber.uc_stack.ss_size = sizeof stack;
  makecontext(&fiber, reinterpret_cast<void (*)()>(run_fiber), 1, seed);
  while (!stop) {
    swapcontext(&outside, &fiber);
    ++done[5];
  }
}

// On an alternate stack, which a report then meets as well.
void on_alternate_stack(unsigned) {
  static char stack[16384];
  const stack_t alternate = {.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  check(sigaltstack(&alternate, nullptr) == 0, "alternate stack");
  while (!stop) {
    raise(SIGUSR2);
    ++done[6];
  }
}
extern "C" SITE void site_handler(int) {
  const unsigned seed = static_cast<unsigned>(done[6].load());
  handled.keep(malloc(sized(10 + seed % 40)), 10 + seed % 40);
  NO_TAIL;
}

void on_small_stack(unsigned seed) {
  while (!stop) {
    site_small(next(seed));
    ++done[7];
  }
}

using Work = void (*)(unsigned);
constexpr Work kWork[] = {churn,           fork_children,      load,          throw_and_catch, jump,
                          switch_contexts, on_alternate_stack, on_small_stack};
constexpr int kThreads = sizeof kWork / sizeof kWork[0];

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long reports = atol(argv[1]);
  plugin_path = argv[2];
  first_seed = argc > 3 ? static_cast<unsigned>(atol(argv[3])) : 1;
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  struct sigaction action = {};
  action.sa_handler = site_handler;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGUSR2, &action, nullptr);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    check(pthread_create(
              &threads[i], i == kThreads - 1 ? &attributes : nullptr,
              [](void* number) -> void* {
                const auto i = reinterpret_cast<long>(number);
                kWork[i](first_seed * 97 + static_cast<unsigned>(i));
                return nullptr;
              },
              reinterpret_cast<void*>(i)) == 0,
          "thread");
  }
  // Several that come at once make one report; how many there were, the program's own ones tell.
  long sent = 0;
  for (long seq = 0; seq < reports && truth_signals; seq = mtrace_report()) {
    for (pthread_t thread : threads) pthread_kill(thread, SIGUSR1);
    sent += kThreads;
  }
  // Each has come to something.
  for (const std::atomic<long>& count : done) {
    while (count == 0) sched_yield();
  }
  stop = true;
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  const struct {
    const char* name;
    const Site& site;
  } sites[] = {{"site_churn", churned},    {"site_throw", thrown}, {"site_jump", jumped},
               {"site_context", switched}, {"site_small", small},  {"site_handler", handled}};
  for (const auto& [name, site] : sites) truth_add(name, site.bytes, site.blocks);
  truth_signals = 0;
  tell(1);
  printf("sent %ld\n", sent);
  for (int i = 0; i < kThreads; ++i) printf("done %d %ld\n", i, done[i].load());
  return 0;
}
