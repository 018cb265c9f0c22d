/* mtrace.h: ask for a memlog from within a program. Part of mtrace, a heap profiler.
 *
 * Nothing has to be linked. In a process that runs under libmtrace.so,
 *     LD_PRELOAD=/path/libmtrace.so ./app
 * the functions below reach it; in any other they do nothing and return 0. This is not glibc's
 * mtrace(3), which is declared in <mcheck.h>.
 *
 *     #include <mtrace.h>
 *     ...
 *     mtrace_report_label("after-warmup");
 *
 * C (C99 and later) and C++. Thread-safe. Async-signal-safe from the second call on: the first
 * call of each function in a source file looks it up with dlsym.
 */
#ifndef MTRACE_H
#define MTRACE_H

#include <dlfcn.h>
#include <string.h>

#if defined(__GNUC__)
#define MTRACE_UNUSED __attribute__((unused))
#else
#define MTRACE_UNUSED
#endif

/* The library's function of that name, or null. The handle is RTLD_DEFAULT. */
static MTRACE_UNUSED void* mtrace_internal_find(const char* name) { return dlsym((void*)0, name); }

/* Writes a report now: what every call stack has allocated and freed since the previous one.
 * Returns its number (1, 2, ...); 0 when the process does not run under libmtrace.so or is not
 * traced; -1 when the report could not be written (the changes then stand in the next one). */
static MTRACE_UNUSED int mtrace_report(void) {
  static int (*function)(void);
  static int looked;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    void* found = mtrace_internal_find("mtrace_report");
    memcpy(&function, &found, sizeof found);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  return function ? function() : 0;
}

/* As mtrace_report(), with a label (at most 255 bytes are kept) that stands in the report. A null
 * pointer or an empty text: no label. */
static MTRACE_UNUSED int mtrace_report_label(const char* label) {
  static int (*function)(const char*);
  static int looked;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    void* found = mtrace_internal_find("mtrace_report_label");
    memcpy(&function, &found, sizeof found);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  return function ? function(label) : 0;
}

#endif /* MTRACE_H */
