// What the call sites of a truth program hold. A site is a function site_NAME that is not inlined
// and does not end in a jump; it says with HOLD and DROP what it asked the allocator for.
// tell(N) prints "site N NAME BYTES BLOCKS" for every site, and asks for a report.
#pragma once

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__clang__)
#define SITE __attribute__((noinline))
#else
#define SITE __attribute__((noipa))
#endif
// Something after the call, so that it cannot become a jump.
#define NO_TAIL __asm__ volatile("" ::: "memory")

struct truth_site {
  const char* name;
  long bytes;
  long blocks;
};
static struct truth_site truth_sites[128];
static int truth_count;
static int truth_signals;  // send SIGUSR1 at each phase

static __attribute__((unused)) void truth_add(const char* name, long bytes, long blocks) {
  int i = 0;
  while (i < truth_count && strcmp(truth_sites[i].name, name) != 0) ++i;
  if (i == truth_count) {
    if (truth_count == 128) abort();
    truth_sites[truth_count++].name = name;
  }
  truth_sites[i].bytes += bytes;
  truth_sites[i].blocks += blocks;
}

#define HOLD(bytes) truth_add(__func__, (long)(bytes), 1)
#define DROP(site, bytes) truth_add("site_" #site, -(long)(bytes), -1)

static __attribute__((unused)) void tell(int phase) {
  for (int i = 0; i < truth_count; ++i) {
    printf("site %d %s %ld %ld\n", phase, truth_sites[i].name, truth_sites[i].bytes,
           truth_sites[i].blocks);
  }
  fflush(stdout);
  if (truth_signals) kill(getpid(), SIGUSR1);
}

static __attribute__((unused)) void begin(int argc, char** argv) {
  truth_signals = argc > 1 && strcmp(argv[1], "signals") == 0;
}

static __attribute__((unused)) void check(int good, const char* what) {
  if (good) return;
  printf("wrong: %s\n", what);
  fflush(stdout);
  _exit(99);
}

// Sizes and pointers that the compiler must not reason about.
static volatile size_t opaque_zero;
static __attribute__((unused)) size_t sized(size_t n) { return n + opaque_zero; }

#ifdef __cplusplus
template <typename T>
static inline T* opaque(T* pointer) {
  asm volatile("" : "+r"(pointer)::"memory");
  return pointer;
}
#endif

// Writes every byte that may be used.
static __attribute__((unused)) void fill(void* p, size_t n) {
  volatile unsigned char* bytes = (volatile unsigned char*)p;
  for (size_t i = 0; i < n; ++i) bytes[i] = (unsigned char)i;
}
