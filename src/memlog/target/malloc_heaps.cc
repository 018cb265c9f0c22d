#include "target/malloc_heaps.h"

#include <algorithm>

namespace mtrace::target {

// The heaps of glibc hold nothing but blocks. One that is not the first begins with a structure of
// its own: the arena, the heap before it, and its size.
bool is_malloc_heap(const Mapping& region, const std::vector<Mapping>& map,
                    const ReadMemory& read) {
  constexpr uint64_t kPage = 4096;
  if (region.path == "[heap]") return true;
  if (!region.path.empty() || region.begin % kArenaHeap != 0 || !region.writable) return false;
  uint64_t head[3] = {};
  if (!read(region.begin, head, sizeof head)) return false;
  const auto is_mapped = [&](uint64_t address) {
    return std::any_of(map.begin(), map.end(), [&](const Mapping& one) {
      return one.writable && address >= one.begin && address < one.end;
    });
  };
  return is_mapped(head[0]) && (head[1] == 0 || is_mapped(head[1])) && head[2] % kPage == 0 &&
         head[2] != 0 && head[2] <= kArenaHeap;
}

}  // namespace mtrace::target
