// event_schedule: a known sequence of events, printed as it happens: "EVENT THREAD ADDRESS VALUES",
// in the words of memlog events. One thread at a time does something.
#include <stdint.h>
#include <sys/mman.h>

#include "mtrace.h"
#include "truth.h"

static void* kept[64];
static char lines[1 << 16];
static size_t used;

// Not by printf, which could allocate.
static void say(const char* event, const void* address, size_t size) {
  used += (size_t)snprintf(lines + used, sizeof lines - used, "%s %d 0x%lx %zu\n", event, gettid(),
                           (unsigned long)(uintptr_t)address, size);
}

static void* use(void* arg) {
  (void)arg;
  for (int i = 0; i < 16; ++i) {
    free(kept[i]);
    say("free", kept[i], 0);
    kept[i] = calloc(3, 100 + (size_t)i);
    say("calloc", kept[i], 3 * (100 + (size_t)i));
  }
  return NULL;
}

int main(void) {
  for (int i = 0; i < 32; ++i) {
    kept[i] = malloc(10 + (size_t)i);
    say("malloc", kept[i], 10 + (size_t)i);
  }
  pthread_t thread;
  pthread_create(&thread, NULL, use, NULL);
  pthread_join(thread, NULL);
  for (int i = 0; i < 32; ++i) {
    void* old = kept[i];
    kept[i] = realloc(old, 2000 + (size_t)i);
    say("realloc", kept[i], 2000 + (size_t)i);
    used += (size_t)snprintf(lines + used, sizeof lines - used, "old 0x%lx\n",
                             (unsigned long)(uintptr_t)old);
  }
  mtrace_note("half");
  char* area = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  say("mmap", area, 8192);
  munmap(area, 8192);
  say("munmap", area, 8192);
  void* none = realloc(kept[0], (size_t)1 << 62);
  if (none != NULL) return 1;
  say("realloc-failed", kept[0], 0);
  void* aligned = NULL;
  if (posix_memalign(&aligned, 64, 300) != 0) return 1;
  say("posix_memalign", aligned, 300);
  mtrace_report_label("end of it");
  fputs(lines, stdout);
  return 0;
}
