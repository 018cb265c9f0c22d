// A thread that closes descriptor 0 and opens a file at once, ROUNDS times and until there are
// REPORTS: it gets 0 again, as
// every program may count on that closes and opens in one thread. Meanwhile others allocate under
// new stacks, start a program, and ask for reports. Prints how often it got another descriptor, how
// often the one that it had was closed by somebody else, and the bytes that stand in its file,
// which it never writes to.
//
//   lowest ROUNDS REPORTS
#include <spawn.h>
#include <sys/stat.h>

#include "new_stacks.h"
#include "truth.h"

namespace {

constexpr int kKept = 4096;

int g_done = 0;      // 1: all rounds
int g_reported = 0;  // 1: all reports were asked for
bool is_set(const int& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED) != 0; }

void* g_kept[kKept];

void* allocate_all_the_time(void*) {
  for (unsigned i = 0; !is_set(g_done); ++i) {
    void*& place = g_kept[i % kKept];
    free(place);
    place = allocate(i * 2654435761u >> 16, 10);
  }
  return nullptr;
}

void* report_all_the_time(void* argument) {
  const int reports = atoi(static_cast<char*>(argument));
  char name[] = "true";
  char* const argv[] = {name, nullptr};
  for (int i = 0; i < reports; ++i) {
    if (getenv("LD_PRELOAD") != nullptr) raise(SIGUSR1);
    pid_t child;
    check(posix_spawn(&child, "/bin/true", nullptr, nullptr, argv, environ) == 0, "spawn");
    check(waitpid(child, nullptr, 0) == child, "wait");
  }
  __atomic_store_n(&g_reported, 1, __ATOMIC_RELAXED);
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  char path[] = "/tmp/mtrace-lowest-XXXXXX";
  const int made = mkstemp(path);
  check(made >= 0 && close(made) == 0, "file");
  pthread_t threads[2];
  check(pthread_create(&threads[0], nullptr, allocate_all_the_time, nullptr) == 0, "thread");
  check(pthread_create(&threads[1], nullptr, report_all_the_time, argv[2]) == 0, "thread");
  long missed = 0;
  long closed = 0;
  const long rounds = atol(argv[1]);
  for (long i = 0; i < rounds || !is_set(g_reported); ++i) {
    closed += close(0) != 0;
    const int opened = open(path, O_RDWR);
    missed += opened != 0;
    if (opened > 0) close(opened);
  }
  __atomic_store_n(&g_done, 1, __ATOMIC_RELAXED);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  struct stat info;
  check(stat(path, &info) == 0 && unlink(path) == 0, "file");
  printf("%ld missed, %ld closed, %ld bytes\n", missed, closed, static_cast<long>(info.st_size));
  return 0;
}
