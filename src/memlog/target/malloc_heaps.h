// Tells what glibc has mapped, heaps of malloc and stacks of threads, from other mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "target/mappings.h"

namespace mtrace::target {

// Heaps besides the first begin at multiples of this (malloc/arena.c, HEAP_MAX_SIZE).
inline constexpr uint64_t kArenaHeap = 64 << 20;

// Copies memory of the process; returns false when it cannot be read.
using ReadMemory = std::function<bool(uint64_t address, void* to, size_t size)>;

// Returns whether `region`, one of `map`, is the first heap, or the beginning of another.
bool is_malloc_heap(const Mapping& region, const std::vector<Mapping>& map, const ReadMemory& read);

// Returns the address of the thread control block at the end of a thread's stack, 0 if `region` is
// none. glibc keeps stacks of threads that have ended for others.
uint64_t control_block_at_end(const Mapping& region, const ReadMemory& read);

}  // namespace mtrace::target
