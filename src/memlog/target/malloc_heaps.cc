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

// glibc puts the thread control block at the end of a stack. Its first and third word are its own
// address (sysdeps/x86_64/nptl/tls.h, tcbhead_t), and behind them are the beginning and the size of
// the stack, as neighbours. The first thread's, which is elsewhere, has not these two.
uint64_t control_block_at_end(const Mapping& region, const ReadMemory& read) {
  constexpr size_t kWords = 1024;
  constexpr size_t kPieceBytes = 4096;
  uint64_t words[kWords] = {};
  const uint64_t begin = std::max(region.begin, region.end - sizeof words);
  const size_t count = (region.end - begin) / sizeof words[0];
  for (uint64_t at = begin; at < region.end; at += kPieceBytes) {
    read(at, words + (at - begin) / sizeof words[0], kPieceBytes);
  }
  for (size_t i = 0; i + 2 < count; ++i) {
    const uint64_t own = begin + i * sizeof words[0];
    if (words[i] != own || words[i + 2] != own) continue;
    for (size_t at = i + 3; at + 1 < count; ++at) {
      // Not 0: that may well stand before a pointer to what is mapped next.
      const bool begins = words[at] != 0 && words[at] <= own;
      if (begins && words[at] + words[at + 1] == region.end) return own;
    }
  }
  return 0;
}

}  // namespace mtrace::target
