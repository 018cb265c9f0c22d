// Loads many libraries, has each allocate, and unloads them, in three rounds: `opens_many DIRECTORY
// COUNT`, all before any goes; `opens_many DIRECTORY COUNT in-turn`, each before the next comes.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 3, kMost = 1000 };

int main(int argc, char** argv) {
  static void* handles[kMost];
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  if (count <= 0 || count > kMost) return 2;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < count; ++i) {
      char path[4096];
      snprintf(path, sizeof path, "%s/%d.so", argv[1], i);
      handles[i] = dlopen(path, RTLD_NOW);
      void* (*const allocate)(void) =
          handles[i] ? (void* (*)(void))dlsym(handles[i], "allocate") : 0;
      if (allocate == NULL) return 3;
      free(allocate());
      if (argc > 3) dlclose(handles[i]);
    }
    for (int i = 0; i < count && argc <= 3; ++i) dlclose(handles[i]);
  }
  return 0;
}
