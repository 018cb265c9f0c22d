// Hazards of living in a program, one a mode (argument 1); argument 2: the directory of the
// plug-ins. Each prints "fine" at its end. Sites as in truth.h. See also hostile.cc and
// sandboxes.cc.
#include <dlfcn.h>
#include <execinfo.h>
#include <unwind.h>

#include <atomic>
#include <stdexcept>

#include "truth.h"

namespace {

const char* directory;

void* load(const char* name) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) puts(dlerror());
  check(handle != nullptr, "plug-in");
  return handle;
}

// Memory that an indirect function of plugin_hungry.so has taken before there was an allocator.
void** hungry_blocks(unsigned* count) {
  auto* taken = reinterpret_cast<void** (*)(unsigned*)>(dlsym(RTLD_DEFAULT, "hungry_blocks"));
  check(taken != nullptr, "hungry library");
  return taken(count);
}
void run_hungry() {
  unsigned count;
  void** blocks = hungry_blocks(&count);
  unsigned got = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (blocks[i] == nullptr) continue;
    ++got;
    check(static_cast<char*>(blocks[i])[1023] == 0, "zeroed");
    memset(blocks[i], 1, 1024);
    if (i % 2 == 0) {
      blocks[i] = realloc(blocks[i], sized(5000));
      check(blocks[i] != nullptr && static_cast<char*>(blocks[i])[1023] == 1, "moved");
    }
    free(blocks[i]);
  }
  check(got > 10, "blocks");
}

// Whether the block is memory of a loaded library and no allocator's.
bool in_library(const void* block) {
  Dl_info info;
  return block != nullptr && dladdr(block, &info) != 0;
}

// Frees it. Needs LD_BIND_NOW, so that the function runs that early.
void run_early() {
  unsigned count;
  void** blocks = hungry_blocks(&count);
  unsigned early = 0;
  for (unsigned i = 0; i < count; ++i) {
    early += in_library(blocks[i]) ? 1 : 0;
    free(blocks[i]);
  }
  check(early > 10, "blocks from before the allocator");
  // glibc would take one that it is given for a free chunk of 1,024 bytes, and give it out again.
  for (unsigned i = 0; i < count; ++i) check(!in_library(malloc(sized(1016))), "no allocator's");
}

// Thread-local memory of a library that was loaded late: the loader allocates it at its first use
// in each thread.
void run_late_tls() {
  static auto* touch =
      reinterpret_cast<int (*)(int)>(dlsym(load("plugin_tls.so"), "touch_dynamic"));
  check(touch != nullptr, "touch");
  for (int round = 0; round < 20; ++round) {
    pthread_t threads[8];
    for (pthread_t& thread : threads) {
      pthread_create(
          &thread, nullptr,
          [](void*) -> void* {
            check(touch(7) == 7 && touch(5) == 12, "thread-local");
            free(malloc(sized(10)));
            return nullptr;
          },
          nullptr);
    }
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
  }
}

// A library with thread-local memory of the kind that must be there from the start finds as much
// room for it as without a preloaded library.
void run_static_tls() {
  auto* touch = reinterpret_cast<int (*)(int)>(dlsym(load("plugin_static_tls.so"), "touch_static"));
  check(touch != nullptr && touch(9) == 9, "static thread-local");
}

// The program's own unwinding, and what it has loaded for it.
_Unwind_Reason_Code count_frame(_Unwind_Context*, void* count) {
  ++*static_cast<int*>(count);
  return _URC_NO_REASON;
}
void run_unwinder() {
  void* frames[64];
  int unwound = 0;
  const int count = backtrace(frames, 64);
  _Unwind_Backtrace(count_frame, &unwound);
  printf("backtrace %d unwound %d\n", count, unwound);
  try {
    throw std::runtime_error("thrown");
  } catch (const std::runtime_error& error) {
    puts(error.what());
  }
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4400];
  while (fgets(line, sizeof line, maps) != nullptr) {
    const char* slash = strrchr(line, '/');
    if (strstr(line, "r-xp") != nullptr && slash != nullptr) printf("loaded %s", slash + 1);
  }
  fclose(maps);
}

// Signals to the process find the threads that it has made, and each is handled once.
std::atomic<int> handled;
void run_signals() {
  signal(SIGRTMIN + 3, [](int) { ++handled; });
  void* kept = malloc(sized(100));
  for (int i = 0; i < 200; ++i) {
    // One by one, some of them while a report is being named.
    if (truth_signals && i % 20 == 0) kill(getpid(), SIGUSR1);
    const int before = handled;
    sigqueue(getpid(), SIGRTMIN + 3, {});
    while (handled == before) sched_yield();
  }
  printf("handled %d\n", handled.load());
  FILE* status = fopen("/proc/self/status", "r");
  char line[256];
  while (fgets(line, sizeof line, status) != nullptr) {
    if (strncmp(line, "Threads:", 8) == 0) fputs(line, stdout);
  }
  fclose(status);
  free(kept);
}

// Loads the library itself, which argument 2 names, late and for the second time.
void run_loads_it() {
  void* handle = dlopen(directory, RTLD_NOW);
  check(handle != nullptr, "the library");
  void* kept = malloc(sized(100));
  check(dlclose(handle) == 0, "dlclose");
  free(kept);
}

const struct {
  const char* name;
  void (*run)();
} kModes[] = {{"hungry", run_hungry},     {"early", run_early},
              {"late_tls", run_late_tls}, {"static_tls", run_static_tls},
              {"unwinder", run_unwinder}, {"signals", run_signals},
              {"loads_it", run_loads_it}};

}  // namespace

int main(int argc, char** argv) {
  directory = argc > 2 ? argv[2] : "";
  truth_signals = getenv("LD_PRELOAD") != nullptr;
  for (const auto& mode : kModes) {
    if (argc < 2 || strcmp(mode.name, argv[1]) != 0) continue;
    mode.run();
    puts("fine");
    return 0;
  }
  return 2;
}
