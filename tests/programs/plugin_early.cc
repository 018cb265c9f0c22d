// A library to preload before everything else: its indirect function is resolved, and its
// constructor runs, before the constructors of the libraries loaded before it. Both allocate; the
// allocating happens in ld.so's hands, with nothing of libmtrace.so set up by a constructor.
#include <stdlib.h>
#include <string.h>

namespace {
char* early_text;
int answer() { return early_text != nullptr && strcmp(early_text, "early") == 0 ? 42 : 0; }
}  // namespace

extern "C" {
__attribute__((visibility("default"))) int early_answer() { return answer(); }
}

__attribute__((constructor(101))) static void early() {
  early_text = strdup("early");
  void* p = malloc(100);
  p = realloc(p, 200);
  free(p);
  p = calloc(3, 5);
  free(p);
  void* q = nullptr;
  if (posix_memalign(&q, 64, 64) == 0) free(q);
}
