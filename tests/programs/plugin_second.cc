// One of two plug-ins of the same shape, to be loaded one after the other at the same place.
#include <stdlib.h>
extern "C" __attribute__((noinline, visibility("default"))) void* site_second(unsigned long size) {
  void* p = malloc(size);
  asm volatile("" ::: "memory");
  return p;
}
extern "C" __attribute__((visibility("default"))) void* allocate(unsigned long size) {
  void* p = site_second(size);
  asm volatile("" ::: "memory");
  return p;
}
