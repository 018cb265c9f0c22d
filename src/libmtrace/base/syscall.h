// Raw system calls: the only place in libmtrace.so that enters the kernel. Not libc's wrappers,
// because those set errno, may be hooked by the host or another preloaded library, and may be
// cancellation points. Each returns the kernel's value: negative errno on failure. All are
// async-signal-safe, and usable in a child that shares its parent's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/machine.h"

namespace mtrace::base {

namespace internal {
template <typename T>
long word(T value) {
  if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else {
    return static_cast<long>(value);
  }
}
}  // namespace internal

// Makes the system call without consulting the filters: for the program, where libc's function
// cannot be called.
template <typename... Args>
inline long call_unasked(long number, Args... args) {
  static_assert(sizeof...(args) <= 6);
  const long words[7] = {internal::word(args)...};
  return machine::system_call(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

// True: base/filters.h has something to say.
[[gnu::visibility("hidden")]] extern bool g_filtered;
// Whether this thread may make the call.
bool may_call(long number);
// call() where g_filtered is set.
long call_if_allowed(long number, long a, long b, long c, long d, long e, long f);
// call_as_helper() where g_filtered is set.
long call_if_inherited(long number, long a, long b, long c, long d, long e, long f);

// Bytes of address space that this process may have (RLIMIT_AS); ~0 for no limit.
unsigned long address_space_limit();

namespace internal {
template <auto kWhereFiltered, typename... Args>
long call(long number, Args... args) {
  const long words[7] = {word(args)...};
  // Out of line, and last: the usual way is short.
  if (g_filtered) [[unlikely]] {
    return kWhereFiltered(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  }
  return call_unasked(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
}  // namespace internal

// Makes the system call. -EPERM, without making it, where a filter might end the process.
template <typename... Args>
inline long call(long number, Args... args) {
  return internal::call<call_if_allowed>(number, args...);
}
// For a process that shares this one's memory (base/spawn.h): it has the thread-local storage of
// the thread that started it, which may be gone. Only filters from before the start hold there.
template <typename... Args>
inline long call_as_helper(long number, Args... args) {
  return internal::call<call_if_inherited>(number, args...);
}

// True for the kernel's error range -4095..-1.
inline bool failed(long result) { return result < 0 && result >= -4095; }

// Zeroed private memory in whole pages, or nullptr. Pages cost nothing until they are touched.
void* map_memory(size_t bytes);
void unmap_memory(void* memory, size_t bytes);
// As map_memory, for memory that will be touched here and there: never in huge pages.
void* map_sparse_memory(size_t bytes);
// Gives the pages of mapped memory back; they read as zero then. False: the kernel refused.
bool give_back(void* memory, size_t bytes);

}  // namespace mtrace::base
