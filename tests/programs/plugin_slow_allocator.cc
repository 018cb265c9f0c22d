// Preloaded, an allocator that serves a block of 321 bytes, and any block after the first of 123,
// which it says, only when it has read a byte from standard input. Another thread waits besides.
#include <pthread.h>
#include <unistd.h>

#include <cstddef>

static bool g_slow;

static void* wait_for_ever(void*) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&mutex);
  for (;;) pthread_cond_wait(&never, &mutex);
}

__attribute__((constructor)) static void begin_thread() {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, wait_for_ever, nullptr) != 0) _exit(97);
}

extern "C" {
void* __libc_malloc(size_t size);

void* malloc(size_t size) noexcept {
  static const char kInside[] = "inside\n";
  char byte;
  if ((size == 321 || g_slow) &&
      (write(1, kInside, sizeof kInside - 1) < 0 || read(0, &byte, 1) < 0)) {
    _exit(98);
  }
  if (size == 123) {
    static const char kSlow[] = "slow\n";
    g_slow = true;
    if (write(1, kSlow, sizeof kSlow - 1) < 0) _exit(98);
  }
  return __libc_malloc(size);
}
}
