// Linked with musl: allocates by its functions, in threads, children and a library that it loads,
// and frees in a destructor: `all PLUGIN`. `quick`: ends by quick_exit. `exec PROGRAM...`: becomes
// another program.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mtrace.h"

#define APART __attribute__((noinline, noclone))

static void* volatile kept[64];
static int count;
static void* volatile until_destructor;
static void* volatile until_handler;

static void keep(void* block) { kept[count++] = block; }

__attribute__((destructor)) static void at_last(void) { free(until_destructor); }
static void handler(void) { free(until_handler); }

APART static void by_qsort_inner(void) {
  keep(malloc(777));
  __asm__ volatile("");
}
static int compare(const void* a, const void* b) {
  static int done;
  if (done++ == 0) by_qsort_inner();
  return *(const int*)a - *(const int*)b;
}
APART static void by_qsort(void) {
  int numbers[] = {5, 4, 3, 2, 1};
  qsort(numbers, 5, sizeof *numbers, compare);
  __asm__ volatile("");
}
APART static void by_fopen(void) {
  FILE* file = fopen("/dev/null", "r");
  keep(file);
  __asm__ volatile("");
}
APART static void by_strdup(void) {
  keep(strdup("eleven char"));
  __asm__ volatile("");
}
APART static void by_calloc(void) {
  keep(calloc(3, 100));
  __asm__ volatile("");
}
APART static void by_aligned(void) {
  void* block = NULL;
  if (posix_memalign(&block, 64, 200) == 0) keep(block);
  keep(memalign(64, 300));
  keep(valloc(400));
  __asm__ volatile("");
}
APART static void by_realloc(void) {
  keep(realloc(malloc(3), 900));
  __asm__ volatile("");
}
APART static void by_plugin(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == NULL) exit(90);
  void* (*work)(void) = (void* (*)(void))dlsym(library, "plugin_work");
  keep(work());
  __asm__ volatile("");
}

APART static void thread_inner(void) {
  for (int i = 1; i <= 10000; ++i) free(malloc((size_t)(i % 900 + 1)));
  void* volatile block = malloc(1000);
  (void)block;
}
static void* thread_main(void* unused) {
  thread_inner();
  return unused;
}
static void in_threads(int number) {
  pthread_t threads[8];
  for (int i = 0; i < number; ++i) pthread_create(threads + i, NULL, thread_main, NULL);
  for (int i = 0; i < number; ++i) pthread_join(threads[i], NULL);
}

// The thread's control block and its stack are apart.
APART static void on_supplied_stack(void) {
  static char stack[32 * 1024] __attribute__((aligned(4096)));
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, sizeof stack);
  if (pthread_create(&thread, &attributes, thread_main, NULL) != 0) exit(91);
  pthread_join(thread, NULL);
}

static int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Memory of calloc that is not used takes none.
static void check_calloc(void) {
  const size_t size = (size_t)64 << 20;
  char* block = calloc(1, size);
  long pages = 0;
  long resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (block == NULL || file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) exit(92);
  if ((size_t)resident * 4096 > size / 2) exit(93);
  for (size_t i = 0; i < size; i += 4096) {
    if (block[i] != 0) exit(94);
  }
  fclose(file);
  free(block);
  char* used = malloc(500);
  memset(used, 1, 500);
  free(used);
  char* again = calloc(5, 100);
  for (int i = 0; i < 500; ++i) {
    if (again[i] != 0) exit(95);
  }
  free(again);
  if (calloc((size_t)-1 / 2, 3) != NULL) exit(96);
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
  if (strcmp(way, "exec") == 0) return execv(argv[2], argv + 2), 97;
  if (strcmp(way, "quick") == 0) {
    until_handler = malloc(4000);
    keep(malloc(40));
    at_quick_exit(handler);
    quick_exit(3);
  }
  until_destructor = malloc(5000);
  until_handler = malloc(4000);
  atexit(handler);
  check_calloc();
  by_calloc();
  by_aligned();
  by_realloc();
  by_fopen();
  by_strdup();
  by_qsort();
  by_plugin(argv[2]);
  raise(SIGUSR1);
  setenv("GROWS", "the environment moves", 1);
  in_threads(8);
  on_supplied_stack();
  mtrace_report_label("threads");
  const pid_t child = fork();
  if (child == 0) {
    keep(malloc(33));
    exit(7);
  }
  return status_of(child) == 7 ? 5 : 98;
}
