// Things that break profilers living in someone else's process, one a mode (argument 1). Each
// prints "fine" at its end. Sites as in truth.h.
#include <dlfcn.h>
#include <limits.h>
#include <ucontext.h>

#include "truth.h"

namespace {

void* kept[64];

// ---- Stacks that the program made itself.
ucontext_t main_context;
ucontext_t fibers[3];
char fiber_stacks[3][65536];

}  // namespace

extern "C" {
SITE void site_fiber(int number) {
  for (int i = 0; i < 10; ++i) {
    kept[number * 10 + i] = malloc(sized(100));
    HOLD(100);
    swapcontext(&fibers[number], &main_context);
  }
}
SITE void site_small_stack() {
  kept[0] = malloc(sized(1000));
  free(malloc(sized(2000)));
}
SITE void site_destructor_of_thread(void* block) {
  free(block);
  kept[1] = malloc(sized(77));
}
SITE void site_deep() { kept[2] = malloc(sized(99)); }
SITE void site_many_stacks(int n);
SITE void site_burst() {
  for (int i = 0; i < 5000; ++i) {
    void* volatile p = malloc(sized(24));
    (void)p;
  }
}
}

namespace {

void run_fibers() {
  for (int i = 0; i < 3; ++i) {
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = fiber_stacks[i];
    fibers[i].uc_stack.ss_size = sizeof(fiber_stacks[i]);
    fibers[i].uc_link = &main_context;
    makecontext(&fibers[i], reinterpret_cast<void (*)()>(site_fiber), 1, i);
  }
  for (int round = 0; round < 11; ++round) {
    for (ucontext_t& fiber : fibers) swapcontext(&main_context, &fiber);
  }
  tell(1);
}

// Threads of this function, and their ends.
void run_threads(int count, void (*function)(), const pthread_attr_t* attributes = nullptr) {
  pthread_t threads[20];
  for (int i = 0; i < count; ++i) {
    check(pthread_create(
              &threads[i], attributes,
              [](void* argument) -> void* {
                reinterpret_cast<void (*)()>(argument)();
                return nullptr;
              },
              reinterpret_cast<void*>(function)) == 0,
          "thread");
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], nullptr);
}

// A stack that the program gave, inside a heap block, with the program's data right above it.
void run_on_own_stack() {
  const size_t size = 65536;
  char* memory = static_cast<char*>(aligned_alloc(4096, size + 4096));
  check(memory != nullptr, "memory");
  kept[63] = memory;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory, size);
  run_threads(1, site_small_stack, &attributes);
}

void run_smallest_thread() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  check(pthread_attr_setstacksize(&attributes, static_cast<size_t>(PTHREAD_STACK_MIN)) == 0,
        "size");
  const auto function = [] {
    site_small_stack();
    if (truth_signals) raise(SIGUSR1);
  };
  run_threads(1, function, &attributes);
}

// Frees and allocations after the thread's own destructors of thread_local objects.
pthread_key_t key;
void run_thread_keys() {
  pthread_key_create(&key, site_destructor_of_thread);
  run_threads(1, [] {
    thread_local struct Local {
      void* block = malloc(sized(10));
      ~Local() { free(block); }
    } local;
    check(local.block != nullptr, "a local object");
    pthread_setspecific(key, malloc(sized(20)));
  });
}

// Threads that fill the tables all at once, while those are still small.
pthread_barrier_t barrier;
void run_burst() {
  constexpr int kBurstThreads = 16;
  pthread_barrier_init(&barrier, nullptr, kBurstThreads);
  run_threads(kBurstThreads, [] {
    pthread_barrier_wait(&barrier);
    site_burst();
  });
}

SITE void recurse(int depth) {
  if (depth == 0) {
    site_deep();
  } else {
    recurse(depth - 1);
  }
  NO_TAIL;
}

inline void at_the_end(int n) { site_many_stacks(n); }
#include "two_ways.h"

}  // namespace

extern "C" SITE void site_many_stacks(int n) {
  void* volatile p = malloc(sized(static_cast<size_t>(1 + n % 7)));
  (void)p;
}

namespace {

void run_many_stacks() {
  for (int n = 0; n < 1 << 14; ++n) choose(n, 14);
}
void run_early() {
  auto* answer = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "early_answer"));
  check(answer != nullptr && answer() == 42, "the early library");
}

const struct {
  const char* name;
  void (*run)();
} kModes[] = {{"fibers", run_fibers},
              {"own_stack", run_on_own_stack},
              {"smallest_thread", run_smallest_thread},
              {"thread_keys", run_thread_keys},
              {"burst", run_burst},
              {"deep", [] { recurse(100000); }},
              {"many_stacks", run_many_stacks},
              {"early", run_early}};

}  // namespace

int main(int argc, char** argv) {
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  for (const auto& mode : kModes) {
    if (argc < 2 || strcmp(mode.name, argv[1]) != 0) continue;
    mode.run();
    puts("fine");
    return 0;
  }
  return 2;
}
