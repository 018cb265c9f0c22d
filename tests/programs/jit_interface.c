/* Runs a mode of the runtime in plugin_jit.so: MODE DIRECTORY. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  char path[4096];
  if (argc != 3) return 2;
  snprintf(path, sizeof path, "%s/plugin_jit.so", argv[2]);
  void* const runtime = dlopen(path, RTLD_NOW);
  if (runtime == NULL) return fprintf(stderr, "%s\n", dlerror()), 3;
  int (*const run)(const char*) = (int (*)(const char*))dlsym(runtime, "run");
  return run == NULL ? 3 : run(argv[1]);
}
