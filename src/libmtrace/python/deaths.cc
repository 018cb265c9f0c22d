#include "python/deaths.h"

#include <string.h>

#include "python/layout.h"

namespace mtrace::unwind {
namespace internal {
uint64_t code_deaths = 0;
}
namespace {

using Free = void (*)(void*);
uintptr_t g_free = 0;

// Counts before the memory is used again. The last call is a jump, so that no walk meets it.
void free_code(void* code) {
  fetch_add<uint64_t>(internal::code_deaths, 1);
  reinterpret_cast<Free>(load_acquire(g_free))(code);
}

}  // namespace

CodeFree find_code_free(const Object& object, uintptr_t code_type) {
  const uintptr_t word = code_type + kPythonTypeFree;
  uintptr_t function = 0;
  if (word % sizeof word != 0 || !object.bounds.contains(word, sizeof word)) return {};
  memcpy(&function, reinterpret_cast<const void*>(word), sizeof function);
  if (function < object.start || function >= object.end) return {};
  return {reinterpret_cast<uintptr_t*>(word), function};
}

void watch_code(const CodeFree& free) {
  if (free.word == nullptr) return;
  store_release(g_free, free.function);
  uintptr_t expected = free.function;
  // A thread that has read the old word may free an object uncounted: no stack runs that object.
  if (compare_exchange(*free.word, expected, reinterpret_cast<uintptr_t>(free_code))) {
    fetch_add<uint64_t>(internal::code_deaths, 1);
  }
}

}  // namespace mtrace::unwind
