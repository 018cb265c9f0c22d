// Things that break profilers living in someone else's process, one a mode (argument 1). Each
// prints "fine" at its end. Sites as in truth.h.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <atomic>

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
SITE void site_without_descriptors() {
  kept[3] = malloc(sized(55));
  NO_TAIL;
}
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
  pthread_t thread;
  check(pthread_create(
            &thread, &attributes,
            [](void*) -> void* {
              site_small_stack();
              return nullptr;
            },
            nullptr) == 0,
        "thread on a given stack");
  pthread_join(thread, nullptr);
}

void run_smallest_thread() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  check(pthread_attr_setstacksize(&attributes, static_cast<size_t>(PTHREAD_STACK_MIN)) == 0,
        "size");
  pthread_t thread;
  check(pthread_create(
            &thread, &attributes,
            [](void*) -> void* {
              site_small_stack();
              if (truth_signals) raise(SIGUSR1);
              return nullptr;
            },
            nullptr) == 0,
        "smallest thread");
  pthread_join(thread, nullptr);
}

// Frees and allocations after the thread's own destructors of thread_local objects.
void run_thread_keys() {
  static pthread_key_t key;
  pthread_key_create(&key, site_destructor_of_thread);
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        thread_local struct Local {
          void* block = malloc(sized(10));
          ~Local() { free(block); }
        } local;
        pthread_setspecific(key, malloc(sized(20)));
        return local.block == nullptr ? &key : nullptr;
      },
      nullptr);
  pthread_join(thread, nullptr);
}

void run_threads() {
  static std::atomic<int> done;
  for (int round = 0; round < 100; ++round) {
    pthread_t threads[20];
    for (pthread_t& thread : threads) {
      pthread_create(
          &thread, nullptr,
          [](void*) -> void* {
            free(malloc(sized(30)));
            ++done;
            return nullptr;
          },
          nullptr);
    }
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
  }
  check(done == 2000, "threads");
}

// Threads that fill the tables all at once, while those are still small.
pthread_barrier_t barrier;
void run_burst() {
  constexpr int kBurstThreads = 16;
  pthread_barrier_init(&barrier, nullptr, kBurstThreads);
  pthread_t threads[kBurstThreads];
  for (pthread_t& thread : threads) {
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          pthread_barrier_wait(&barrier);
          site_burst();
          return nullptr;
        },
        nullptr);
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
}

SITE void recurse(int depth) {
  if (depth == 0) {
    site_deep();
  } else {
    recurse(depth - 1);
  }
  NO_TAIL;
}

// No descriptor is left to open a report with; then only standard input's; then another.
void run_without_descriptors(bool one_in_the_end) {
  const rlimit limit = {4, 4};
  setrlimit(RLIMIT_NOFILE, &limit);
  const int last = open("/dev/null", O_RDONLY);
  check(last == 3, "the last descriptor");
  site_without_descriptors();
  if (truth_signals) raise(SIGUSR1);
  close(0);
  if (truth_signals) raise(SIGUSR1);
  check(open("/dev/null", O_RDONLY) == 0, "the descriptor that was closed is the next one");
  if (!one_in_the_end) return;
  close(last);
  if (truth_signals) raise(SIGUSR1);
  check(open("/dev/null", O_RDONLY) == 3, "the descriptor that was closed is the next one");
}

inline void at_the_end(int n) { site_many_stacks(n); }
#include "two_ways.h"

}  // namespace

extern "C" SITE void site_many_stacks(int n) {
  void* volatile p = malloc(sized(static_cast<size_t>(1 + n % 7)));
  (void)p;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  auto is = [&](const char* name) { return strcmp(mode, name) == 0; };
  if (is("fibers")) {
    run_fibers();
    tell(1);
  } else if (is("own_stack")) {
    run_on_own_stack();
  } else if (is("smallest_thread")) {
    run_smallest_thread();
  } else if (is("thread_keys")) {
    run_thread_keys();
  } else if (is("threads")) {
    run_threads();
  } else if (is("burst")) {
    run_burst();
  } else if (is("deep")) {
    recurse(100000);
  } else if (is("descriptors")) {
    run_without_descriptors(true);
  } else if (is("no_descriptors")) {
    run_without_descriptors(false);
  } else if (is("many_stacks")) {
    for (int n = 0; n < 1 << 14; ++n) choose(n, 14);
  } else if (is("early")) {
    auto* answer = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "early_answer"));
    check(answer != nullptr && answer() == 42, "the early library");
  } else {
    return 2;
  }
  puts("fine");
  return 0;
}
