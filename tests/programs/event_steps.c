// event_steps: says its pid; then for each line "EVENTS DEPTH" of standard input makes so many
// events, allocations and frees of known sizes, DEPTH calls deep, and says "done". Ends with its
// input. Not by stdio, which could allocate.
#include "truth.h"

static void* kept[64];
static unsigned long made;

__attribute__((noinline)) static void step(long depth) {
  if (depth > 1) {
    step(depth - 1);
    __asm__ volatile("");
    return;
  }
  void** slot = &kept[made * 7 % 64];
  if (*slot != NULL) {
    free(*slot);
    *slot = NULL;
  } else {
    *slot = malloc(made % 500 + 1);
  }
  ++made;
}

static void say(const char* text) {
  if (write(1, text, strlen(text)) < 0) _exit(1);
}

int main(void) {
  char line[64];
  snprintf(line, sizeof line, "%d\n", getpid());
  say(line);
  for (;;) {
    size_t size = 0;
    while (size == 0 || line[size - 1] != '\n') {
      if (read(0, line + size, 1) != 1) return 0;
      ++size;
    }
    line[size - 1] = '\0';
    char* rest;
    const long events = strtol(line, &rest, 10);
    const long depth = strtol(rest, NULL, 10);
    for (long i = 0; i < events; ++i) step(depth);
    say("done\n");
  }
}
