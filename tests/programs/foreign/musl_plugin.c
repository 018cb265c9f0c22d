// Loaded by musl_ways.c: allocates when it is loaded and when it is called.
#include <stdlib.h>

void* of_constructor;

__attribute__((constructor)) static void plugin_constructor(void) { of_constructor = malloc(55); }

void* plugin_work(void);
void* plugin_work(void) {
  void* volatile block = malloc(66);
  return block;
}
