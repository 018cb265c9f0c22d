// What the call sites of a truth program hold. A site is a function site_NAME that is not inlined
// and does not end in a jump; it says with HOLD and DROP what it asked the allocator for.
// tell(N) prints "site N NAME BYTES BLOCKS" for every site, and asks for a report.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

// Sites that do one thing: keep a block of so many bytes, or return what a call gives.
#define KEEPS(name, place, bytes) \
  SITE void site_##name(void) {   \
    place = malloc(sized(bytes)); \
    NO_TAIL;                      \
  }
#define GIVES(name, parameters, call) \
  SITE void* site_##name parameters { \
    void* given = call;               \
    NO_TAIL;                          \
    return given;                     \
  }

// A line, at once.
static __attribute__((unused)) void print(const char* line) {
  puts(line);
  fflush(stdout);
}

// Waits for the end of standard input.
static __attribute__((unused)) void await_end(void) {
  for (char byte; read(0, &byte, 1) > 0;) continue;
}

// The status of a child that has ended, as from waitpid(2).
static __attribute__((unused)) int reap(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) continue;
  return status;
}

// Leaves no pointers on the stack.
static __attribute__((unused)) SITE void wipe_stack(void) {
  volatile char room[16384];
  for (size_t i = 0; i < sizeof room; ++i) room[i] = 0;
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
