// Loses some blocks, holds others until its exit handlers run, and ends in the way that the
// argument names. Prints "lost BYTES BLOCKS" first.
#include "truth.h"

namespace {

constexpr int kLost = 3;
constexpr int kHeld = 5;
void* volatile g_held[kHeld];

[[gnu::noinline]] void* make(size_t size) {
  void* block = malloc(size);
  memset(block, 0, size);
  return block;
}

[[gnu::noinline]] void lose() {
  size_t bytes = 0;
  for (int i = 0; i < kLost; ++i) {
    make(1000 + i);
    bytes += 1000 + i;
  }
  char line[64];
  const int length = snprintf(line, sizeof line, "lost %zu %d\n", bytes, kLost);
  (void)!write(1, line, length);
}

[[gnu::noinline]] void hold() {
  for (void* volatile& one : g_held) one = make(2000);
}

// Takes away what holds the blocks, and does not free them.
void forget() {
  for (void* volatile& one : g_held) one = nullptr;
}

struct Static {
  ~Static() { forget(); }
} g_static;
struct PerThread {
  int touched = 0;
  ~PerThread() { forget(); }
};
thread_local PerThread t_object;

void* end_in_thread(void*) { exit(4); }

void end(const char* how) {
  pthread_t thread;
  if (strcmp(how, "exit") == 0) exit(4);
  if (strcmp(how, "quick") == 0) quick_exit(4);
  if (strcmp(how, "now") == 0) _exit(4);
  if (strcmp(how, "thread") == 0) {
    pthread_create(&thread, nullptr, end_in_thread, nullptr);
    for (;;) pause();
  }
  if (strcmp(how, "abort") == 0) abort();
}

}  // namespace

int main(int, char** arguments) {
  t_object.touched = 1;
  atexit(forget);
  at_quick_exit(forget);
  hold();
  lose();
  wipe_stack();
  end(arguments[1]);
  return 4;
}
