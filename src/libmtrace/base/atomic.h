// The few atomic operations the ledger needs, on plain words, so that its structures stay plain
// data that another process can map. Orders are named where they matter.
//
// MTRACE_ATOMICS names a header with the same functions for a program that runs the tables step by
// step (tests/schedule).
#pragma once

// Places the few variables that every malloc and free reads side by side, though each is defined
// where it belongs: a program whose own work fills the caches waits for each line and each page
// that is fetched again. They are written before the first allocation is recorded, or seldom.
//
// MTRACE_HOT goes at the definition. Not for inline variables, which the compiler puts in sections
// of their own.
#define MTRACE_HOT [[gnu::section("mtrace_hot")]]
// For a table, which would spread the variables apart: placed next to them.
#define MTRACE_HOT_TABLE [[gnu::section("mtrace_hot_table")]]

#ifdef MTRACE_ATOMICS
#include MTRACE_ATOMICS
#else

#include <cstdint>

#include "base/machine.h"

// ThreadSanitizer sees the compiler's atomic operations and no assembly. Other processors have no
// instruction that is whole for this thread only.
#if defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
#define MTRACE_OWN_IN_ASSEMBLY 0
#elif defined(__has_feature)
#define MTRACE_OWN_IN_ASSEMBLY !__has_feature(thread_sanitizer)
#else
#define MTRACE_OWN_IN_ASSEMBLY 1
#endif

namespace mtrace {

template <typename T>
T load(const T& word) {
  T value;
  __atomic_load(&word, &value, machine::kRelaxedLoad);
  return value;
}
template <typename T>
T load_acquire(const T& word) {
  T value;
  __atomic_load(&word, &value, __ATOMIC_ACQUIRE);
  return value;
}
template <typename T>
void store(T& word, T value) {
  __atomic_store(&word, &value, machine::kRelaxedStore);
}
template <typename T>
void store_release(T& word, T value) {
  __atomic_store(&word, &value, __ATOMIC_RELEASE);
}
template <typename T>
T fetch_add(T& word, T value) {
  return __atomic_fetch_add(&word, value, machine::kRelaxedExchange);
}
// Adds with acquire and release order; returns the new value.
template <typename T>
T add_fetch_ordered(T& word, T value) {
  return __atomic_add_fetch(&word, value, __ATOMIC_ACQ_REL);
}
// True: `word` was `expected` and is now `desired`. False: `expected` gets the value of `word`.
template <typename T>
bool compare_exchange(T& word, T& expected, T desired) {
  return __atomic_compare_exchange(&word, &expected, &desired, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE);
}
template <typename T>
T exchange(T& word, T value) {
  return __atomic_exchange_n(&word, value, __ATOMIC_ACQ_REL);
}
// All threads see earlier stores before a later load is done.
inline void full_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
// Keeps the compiler from moving memory accesses across: what a signal handler of this thread sees.
inline void compiler_barrier() { asm volatile("" ::: "memory"); }
// And other threads see the stores before it before those after it; no instruction on x86_64.
inline void store_barrier() { __atomic_thread_fence(__ATOMIC_RELEASE); }

// glibc's __libc_single_threaded, which pthread_create clears before the second thread begins.
// Before glibc 2.32, and before modules/c_library.h has found it, a byte that is 0.
extern const char* g_single_threaded;
inline bool single_threaded() { return *g_single_threaded != 0; }

#if MTRACE_OWN_IN_ASSEMBLY

// compare_exchange() without the bus lock: for words that only one thread writes, so that only a
// signal handler can come between.
inline bool exchange_own(uint64_t& word, uint64_t& expected, uint64_t desired) {
  bool done;
  asm volatile("cmpxchgq %3, %1"
               : "=@ccz"(done), "+m"(word), "+a"(expected)
               : "r"(desired)
               : "memory");
  return done;
}
// compare_exchange(), but without the bus lock where the process has a single thread, so that only
// a signal handler can come between.
inline bool claim_exchange(uint64_t& word, uint64_t& expected, uint64_t desired) {
  if (!single_threaded()) return compare_exchange(word, expected, desired);
  return exchange_own(word, expected, desired);
}
// Adds 1 in one instruction, so that no signal handler on this thread comes between; for words that
// only one thread writes. Returns the new value.
inline uint32_t count_up_own(uint32_t& word) {
  uint32_t old = 1;
  asm volatile("xaddl %0, %1" : "+r"(old), "+m"(word) : : "cc", "memory");
  return old + 1;
}
// Add or subtract in one instruction, like count_up_own().
inline void add_own(uint32_t& word, uint32_t value) {
  asm volatile("addl %1, %0" : "+m"(word) : "er"(value) : "cc");
}
inline void add_own(uint64_t& word, uint64_t value) {
  asm volatile("addq %1, %0" : "+m"(word) : "er"(value) : "cc");
}
inline void subtract_own(uint64_t& word, uint64_t value) {
  asm volatile("subq %1, %0" : "+m"(word) : "er"(value) : "cc");
}

#else

inline bool claim_exchange(uint64_t& word, uint64_t& expected, uint64_t desired) {
  return compare_exchange(word, expected, desired);
}
inline bool exchange_own(uint64_t& word, uint64_t& expected, uint64_t desired) {
  return compare_exchange(word, expected, desired);
}
inline uint32_t count_up_own(uint32_t& word) { return fetch_add(word, 1u) + 1; }
inline void add_own(uint32_t& word, uint32_t value) { fetch_add(word, value); }
inline void add_own(uint64_t& word, uint64_t value) { fetch_add(word, value); }
inline void subtract_own(uint64_t& word, uint64_t value) { fetch_add(word, -value); }

#endif

}  // namespace mtrace

#endif  // MTRACE_ATOMICS
