// Tells the heaps of glibc's malloc from other mappings.
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

}  // namespace mtrace::target
