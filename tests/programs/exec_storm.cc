// exec_storm COUNT [raw]: becomes this program again, with COUNT one less, while other threads
// allocate: by libc after up to 4 ms, until the last one waits for the end of its input and ends
// with status 7; or "raw", by a thread's system call after 5 to 35 ms, until the last one ends.
#include <time.h>

#include "truth.h"

namespace {

int count;
char** arguments;

void* allocate(void* pause) {
  for (;;) {
    free(malloc(100));
    if (pause != nullptr) usleep(200);
  }
}

void* replace(void*) {
  timespec left = {0, (5 + rand() % 30) * 1000000L};
  while (nanosleep(&left, &left) != 0) continue;
  syscall(SYS_execve, "/proc/self/exe", arguments, environ);
  _exit(4);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const bool raw = argc > 2;
  count = atoi(argv[1]);
  if (count == 0 && raw) return 0;
  if (count == 0) return await_end(), 7;
  char less[16];
  snprintf(less, sizeof less, "%d", count - 1);
  argv[1] = less;
  arguments = argv;
  srand(static_cast<unsigned>(getpid() + count));
  pthread_t thread;
  for (int i = 0; i < (raw ? 1 : 24); ++i) {
    if (pthread_create(&thread, nullptr, allocate, raw ? nullptr : &count) != 0) return 97;
  }
  if (!raw) {
    usleep(static_cast<useconds_t>(count * 379 % 4000));  // another moment each time
    execv(argv[0], argv);
    return 98;
  }
  pthread_create(&thread, nullptr, replace, nullptr);
  for (;;) {
    if (count % 2 != 0) pause();
    free(malloc(10));
  }
}
