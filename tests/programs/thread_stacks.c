/* Threads that run, on stacks of glibc's and on lent memory, and one of each that has ended. Before
 * its report the program says what is resident of both, in bytes. */
#include <semaphore.h>
#include <stdint.h>
#include <sys/mman.h>

#include "mtrace.h"
#include "truth.h"

enum { kRunning = 3, kMost = 8, kLent = 1 << 20, kUsed = 1 << 18, kPage = 4096 };

static struct Stack {
  uintptr_t begin;
  uintptr_t end;
  int lent;
  sem_t may_end;
} stacks[kMost];
static int stack_count;
static sem_t is_there;

static void* use_stack(void* lent) {
  volatile char used[kUsed];
  for (int i = 0; i < kUsed; i += kPage) used[i] = 1;
  check(used[0] == 1, "the stack");
  pthread_attr_t attributes;
  void* begin;
  size_t size;
  check(pthread_getattr_np(pthread_self(), &attributes) == 0, "pthread_getattr_np");
  check(pthread_attr_getstack(&attributes, &begin, &size) == 0, "pthread_attr_getstack");
  pthread_attr_destroy(&attributes);
  struct Stack* const stack = &stacks[stack_count++];
  stack->begin = (uintptr_t)begin;
  stack->end = stack->begin + size;
  stack->lent = lent != NULL;
  check(sem_init(&stack->may_end, 0, 0) == 0, "sem_init");
  sem_post(&is_there);
  while (sem_wait(&stack->may_end) != 0) continue;
  return NULL;
}

static pthread_t start(char* lent) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (lent != NULL) check(pthread_attr_setstack(&attributes, lent, kLent) == 0, "setstack");
  check(pthread_create(&thread, &attributes, use_stack, lent) == 0, "pthread_create");
  pthread_attr_destroy(&attributes);
  while (sem_wait(&is_there) != 0) continue;
  return thread;
}

/* With guard pages on both sides, so that the kernel joins it with nothing. */
static char* lend(void) {
  char* p = mmap(NULL, kLent + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(p != MAP_FAILED, "mmap");
  check(mprotect(p + kPage, kLent, PROT_READ | PROT_WRITE) == 0, "mprotect");
  return p + kPage;
}

static void run_to_the_end(char* lent) {
  const pthread_t thread = start(lent);
  sem_post(&stacks[stack_count - 1].may_end);
  check(pthread_join(thread, NULL) == 0, "pthread_join");
}

int main(void) {
  check(sem_init(&is_there, 0, 0) == 0, "sem_init");
  for (int i = 0; i < kRunning; ++i) start(NULL);
  start(lend());
  run_to_the_end(NULL);
  run_to_the_end(lend());

  int found = 0;
  size_t resident[2] = {0, 0};
  int which = -1;
  char line[512];
  FILE* const file = fopen("/proc/self/smaps", "r");
  check(file != NULL, "smaps");
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned long begin;
    unsigned long end;
    unsigned long kib;
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
      which = -1;
      for (int i = 0; i < stack_count; ++i) {
        if (stacks[i].begin == begin && stacks[i].end == end) which = stacks[i].lent;
      }
    } else if (which >= 0 && sscanf(line, "Rss: %lu kB", &kib) == 1) {
      resident[which] += kib * 1024;
      found += which == 0;
    }
  }
  fclose(file);
  check(found >= kRunning, "stacks of their own mappings");
  printf("stacks %zu lent %zu\n", resident[0], resident[1]);
  check(mtrace_report() == 1, "a report");
  fflush(stdout);
  _exit(0);
}
