// Executes itself again and again, as often as its argument says, each time while other threads are
// at work; the last one waits for the end of its input and exits with status 7.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

static void* work(void*) {
  for (;;) {
    free(malloc(100));
    usleep(200);
  }
}

int main(int argc, char** argv) {
  constexpr int kThreads = 24;
  const int left = argc > 1 ? atoi(argv[1]) : 0;
  if (left == 0) {
    while (getchar() != EOF) {
    }
    return 7;
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, work, nullptr) != 0) return 97;
  }
  usleep(static_cast<useconds_t>(left * 379 % 4000));  // another moment each time
  char number[16];
  snprintf(number, sizeof number, "%d", left - 1);
  execl(argv[0], argv[0], number, static_cast<char*>(nullptr));
  return 98;
}
