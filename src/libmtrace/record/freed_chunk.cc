#include "record/freed_chunk.h"

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/probe.h"
#include "next/next_functions.h"

namespace mtrace::hook {
namespace {

constexpr uintptr_t kPreviousInUse = 1;
constexpr uintptr_t kMapped = 2;
constexpr uintptr_t kFlags = 7;

uintptr_t g_cached = 0;  // second word of a block in a cache; 0: not known

}  // namespace

void learn_freed_chunks() {
  store(g_cached, uintptr_t{0});
  if (!allocator_is_libc()) return;
  auto* const block = static_cast<uintptr_t*>(g_next.malloc(2 * sizeof(uintptr_t)));
  if (block == nullptr) return;
  store(block[1], uintptr_t{0});
  const auto second = reinterpret_cast<uintptr_t>(block + 1);
  g_next.free(block);
  uintptr_t word = 0;
  if (sys::read_word(second, &word)) store(g_cached, word);
}

bool is_freed_chunk(const void* block) {
  if (!allocator_is_libc()) return false;
  const auto address = reinterpret_cast<uintptr_t>(block);
  uintptr_t size;
  uintptr_t word;
  if (!sys::read_word(address - sizeof size, &size)) return true;  // unmapped
  if ((size & kMapped) != 0) return false;
  if (load(g_cached) != 0 && sys::read_word(address + sizeof word, &word) &&
      word == load(g_cached)) {
    return true;
  }
  const uintptr_t next = address - 2 * sizeof size + (size & ~kFlags);
  return sys::read_word(next + sizeof size, &word) && (word & kPreviousInUse) == 0;
}

}  // namespace mtrace::hook
