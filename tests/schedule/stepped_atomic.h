// base/atomic.h for programs that run the tables step by step: the same functions, each a step of
// the scheduler (scheduler.h), on the memory of x86 or of Arm (memory.h).
#pragma once

#include <cstdint>
#include <cstring>

namespace mtrace {

namespace schedule {

enum class Order { kRelaxed, kAcquire, kRelease, kBoth };

// A word of 1, 2, 4 or 8 bytes.
uint64_t read(const void* address, unsigned size, Order order);
void write(void* address, unsigned size, uint64_t value, Order order);
// Reading and writing at once. exchange_if: true and `desired` stored if the word was `*expected`.
bool exchange_if(void* address, unsigned size, uint64_t* expected, uint64_t desired);
uint64_t exchange(void* address, unsigned size, uint64_t value);
uint64_t add(void* address, unsigned size, uint64_t value, Order order);  // the old value
void fence();
void fence_all();  // on every thread
void store_barrier();
// On x86 one instruction without the lock: no signal handler on this thread comes between its
// reading and its writing, but other threads do. On Arm like the above. Returns the old value.
uint64_t add_unlocked(void* address, unsigned size, uint64_t value);
bool exchange_if_unlocked(void* address, unsigned size, uint64_t* expected, uint64_t desired);
bool one_thread();  // what __libc_single_threaded would say

template <typename T>
uint64_t bits(T value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}
template <typename T>
T value_of(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace schedule

template <typename T>
T load(const T& word) {
  return schedule::value_of<T>(schedule::read(&word, sizeof word, schedule::Order::kRelaxed));
}
template <typename T>
T load_acquire(const T& word) {
  return schedule::value_of<T>(schedule::read(&word, sizeof word, schedule::Order::kAcquire));
}
template <typename T>
void store(T& word, T value) {
  schedule::write(&word, sizeof word, schedule::bits(value), schedule::Order::kRelaxed);
}
template <typename T>
void store_release(T& word, T value) {
  schedule::write(&word, sizeof word, schedule::bits(value), schedule::Order::kRelease);
}
template <typename T>
T fetch_add(T& word, T value) {
  return schedule::value_of<T>(
      schedule::add(&word, sizeof word, schedule::bits(value), schedule::Order::kRelaxed));
}
template <typename T>
T add_fetch_ordered(T& word, T value) {
  const T old = schedule::value_of<T>(
      schedule::add(&word, sizeof word, schedule::bits(value), schedule::Order::kBoth));
  return old + value;
}
template <typename T>
bool compare_exchange(T& word, T& expected, T desired) {
  uint64_t seen = schedule::bits(expected);
  const bool done = schedule::exchange_if(&word, sizeof word, &seen, schedule::bits(desired));
  if (!done) expected = schedule::value_of<T>(seen);
  return done;
}
template <typename T>
T exchange(T& word, T value) {
  return schedule::value_of<T>(schedule::exchange(&word, sizeof word, schedule::bits(value)));
}
inline bool claim_exchange(uint64_t& word, uint64_t& expected, uint64_t desired) {
  return schedule::one_thread()
             ? schedule::exchange_if_unlocked(&word, sizeof word, &expected, desired)
             : schedule::exchange_if(&word, sizeof word, &expected, desired);
}
inline bool single_threaded() { return schedule::one_thread(); }
inline uint32_t count_up_own(uint32_t& word) {
  return static_cast<uint32_t>(schedule::add_unlocked(&word, sizeof word, 1)) + 1;
}
inline void add_own(uint32_t& word, uint32_t value) {
  schedule::add_unlocked(&word, sizeof word, value);
}
inline void add_own(uint64_t& word, uint64_t value) {
  schedule::add_unlocked(&word, sizeof word, value);
}
inline void subtract_own(uint64_t& word, uint64_t value) {
  schedule::add_unlocked(&word, sizeof word, -value);
}
inline void full_fence() { schedule::fence(); }
inline void compiler_barrier() {}
inline void store_barrier() { schedule::store_barrier(); }

}  // namespace mtrace
