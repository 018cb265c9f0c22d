// The few atomic operations the ledger needs, on plain words, so that its structures stay plain
// data that another process can map. Orders are named where they matter.
#pragma once

#include <cstdint>

namespace mtrace {

template <typename T>
T load(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}
template <typename T>
T load_acquire(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <typename T>
void store(T& word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}
template <typename T>
void store_release(T& word, T value) {
  __atomic_store(&word, &value, __ATOMIC_RELEASE);
}
template <typename T>
T fetch_add(T& word, T value) {
  return __atomic_fetch_add(&word, value, __ATOMIC_RELAXED);
}
// True: `word` was `expected` and is now `desired`. False: `expected` holds what was there.
template <typename T>
bool compare_exchange(T& word, T& expected, T desired) {
  return __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE);
}
// The same without the bus lock, where only a signal handler can come between.
inline bool compare_exchange_alone(uint64_t& word, uint64_t& expected, uint64_t desired) {
  bool done;
  asm volatile("cmpxchgq %3, %1"
               : "=@ccz"(done), "+m"(word), "+a"(expected)
               : "r"(desired)
               : "memory");
  return done;
}
template <typename T>
T exchange(T& word, T value) {
  return __atomic_exchange_n(&word, value, __ATOMIC_ACQ_REL);
}
// One more, in one instruction, so that no signal handler on this thread comes between; for words
// that only one thread writes. Returns the new value.
inline uint32_t count_up_own(uint32_t& word) {
  uint32_t old = 1;
  asm volatile("xaddl %0, %1" : "+r"(old), "+m"(word) : : "cc", "memory");
  return old + 1;
}
// Adds in one instruction, too.
inline void add_own(uint32_t& word, uint32_t value) {
  asm volatile("addl %1, %0" : "+m"(word) : "er"(value) : "cc");
}
inline void add_own(uint64_t& word, uint64_t value) {
  asm volatile("addq %1, %0" : "+m"(word) : "er"(value) : "cc");
}
// Keeps the compiler from moving memory accesses across; the processor keeps stores in order.
inline void compiler_barrier() { asm volatile("" ::: "memory"); }

}  // namespace mtrace
