// A part of a heap that a test fills with blocks.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "view/heap/heap_pages.h"

namespace mtrace::test {

// 1 to 40 pages from `begin` on, three of four in memory.
inline analyze::HeapPages random_heap(std::mt19937& random, uint64_t begin, uint64_t header) {
  std::vector<bool> resident(1 + random() % 40);
  for (size_t i = 0; i < resident.size(); ++i) resident[i] = random() % 4 != 0;
  return {begin, resident, header};
}

}  // namespace mtrace::test
