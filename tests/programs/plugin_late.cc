// A library to load into a process that is being traced: it allocates in its constructor, by malloc
// and by operator new, and keeps what it got.
#include <stdlib.h>

namespace {
void* kept[2];
}

__attribute__((constructor)) static void late() {
  kept[0] = malloc(3000);
  kept[1] = new char[5000];
}

extern "C" __attribute__((visibility("default"))) void late_free() {
  free(kept[0]);
  delete[] static_cast<char*>(kept[1]);
}
