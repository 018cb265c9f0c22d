/* A thread asks for a report and ends, and its memory goes, with its thread-local storage. Prints
 * "gone" and waits for a byte. Then asks once more. */
#include <mtrace.h>
#include <sys/mman.h>

#include "truth.h"

static void* report(void* unused) {
  mtrace_report();
  return unused;
}

int main(void) {
  /* Filters from before the start are tried only in a program that starts processes. */
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  const size_t size = 1 << 20;
  void* const stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, size);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, report, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  munmap(stack, size);
  print("gone");
  getchar();
  mtrace_report();
  return 0;
}
