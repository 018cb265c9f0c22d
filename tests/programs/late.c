// Loads libmtrace.so into itself and does what memlog attach and detach do, but for the stopping of
// threads: has itself patched, allocates, has the patches undone, and does both once more.
//   late LIBRARY PLUGIN DIRECTORY
#include <dlfcn.h>
#include <stdint.h>

#include "truth.h"

struct patch {
  uint64_t address;
  uint64_t before;
  uint64_t after;
};
struct answer {
  const struct patch* patches;
  uint64_t count;
  char reason[256];
};

static struct answer answer;

// Through the kernel, because most of the words may only be read.
static void apply(void) {
  check(answer.reason[0] == '\0', answer.reason);
  const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  for (uint64_t i = 0; i < answer.count; ++i) {
    const struct patch* patch = &answer.patches[i];
    uint64_t now;
    check(pread(memory, &now, 8, (off_t)patch->address) == 8 && now == patch->before, "before");
    check(pwrite(memory, &patch->after, 8, (off_t)patch->address) == 8, "after");
  }
  close(memory);
}

static void* held[8];

GIVES(before, (void), malloc(sized(1000)))
SITE void* site_malloc(void) {
  void* p = malloc(sized(100));
  HOLD(100);
  NO_TAIL;
  return p;
}
SITE void* site_calloc(void) {
  void* p = calloc(3, sized(50));
  HOLD(150);
  NO_TAIL;
  return p;
}
// The block from before is taken for unknown; what the call returns is known.
SITE void* site_realloc(void* old) {
  void* p = realloc(old, sized(700));
  HOLD(700);
  NO_TAIL;
  return p;
}
SITE void* site_libc(void) {
  void* p = strdup("twelve bytes");
  HOLD(13);
  NO_TAIL;
  return p;
}
// Found by name, as programs do that load their allocator.
SITE void* site_named(void) {
  void* (*by_name)(size_t) = (void* (*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
  void* p = by_name(sized(77));
  HOLD(77);
  NO_TAIL;
  return p;
}
SITE void* site_again(void) {
  void* p = malloc(sized(44));
  HOLD(44);
  NO_TAIL;
  return p;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  truth_signals = 1;
  void* first = site_before();
  void* second = site_before();
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  check(library != NULL, "library");
  void (*attach)(const char*, struct answer*) = dlsym(library, "mtrace_attach");
  void (*detach)(struct answer*) = dlsym(library, "mtrace_detach");
  check(attach != NULL && detach != NULL, "entrances");
  char options[4096] = {};
  snprintf(options, sizeof options - 1, "MTRACE_OUTPUT=%s%cMTRACE_RESOLVER=none", argv[3], '\0');
  attach(options, &answer);
  check(answer.count > 10, "patches");
  apply();
  attach(options, &answer);  // of what is patched already nothing is left
  check(answer.count == 0, "patched twice");
  held[0] = site_malloc();
  held[1] = site_calloc();
  held[2] = site_realloc(first);
  free(second);
  held[3] = site_libc();
  held[4] = site_named();
  void* plugin = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  check(plugin != NULL, "plugin");
  tell(1);
  free(held[0]);
  DROP(malloc, 100);
  tell(2);

  detach(&answer);
  apply();
  printf("detached\n");
  void* unseen = site_malloc();
  free(held[1]);
  detach(&answer);
  check(answer.count == 0, "patches left");

  memset(truth_sites, 0, sizeof truth_sites);
  truth_count = 0;
  attach(options, &answer);
  apply();
  held[5] = site_again();
  free(unseen);
  free(held[2]);
  ((void (*)(void))dlsym(plugin, "late_free"))();
  tell(3);
  return 0;
}
