#include "base/own_ranges.h"

#include <algorithm>
#include <atomic>

#include "base/pages.h"
#include "format/ledger.h"

namespace mtrace::sys {
namespace {

constexpr uint32_t kMost = format::kLedgerOwnRanges;
constexpr size_t kLeast = size_t{64} << 10;
constexpr unsigned kPageBits = 12;  // of the unit, whatever the kernel's pages are
constexpr unsigned kCountBits = format::kLedgerOwnRangeBits;  // 1 TiB

// A range in one word: the number of its first page above the count of its pages; 0: free.
std::atomic<uint64_t> ranges[kMost];
std::atomic<uint32_t> used{0};  // places up to this one have been used

uint64_t packed(uintptr_t start, size_t bytes) {
  const uint64_t pages =
      std::min<uint64_t>(whole_pages(bytes) >> kPageBits, (1u << kCountBits) - 1);
  return uint64_t{start >> kPageBits} << kCountBits | pages;
}

uint32_t known() { return std::min(used.load(std::memory_order_relaxed), kMost); }

}  // namespace

void add_own_range(uintptr_t start, size_t bytes) {
  if (bytes < kLeast) return;
  const uint64_t range = packed(start, bytes);
  // Short-lived memory, like a report's tables, takes the same places again.
  const uint32_t end = known();
  for (uint32_t i = end > 16 ? end - 16 : 0; i < end; ++i) {
    uint64_t none = 0;
    if (ranges[i].compare_exchange_strong(none, range)) return;
  }
  const uint32_t fresh = end < kMost ? used.fetch_add(1, std::memory_order_relaxed) : kMost;
  if (fresh < kMost) ranges[fresh].store(range);
}

void remove_own_range(uintptr_t start) {
  for (uint32_t i = known(); i > 0; --i) {
    uint64_t range = ranges[i - 1].load(std::memory_order_relaxed);
    if (range >> kCountBits != start >> kPageBits) continue;
    if (ranges[i - 1].compare_exchange_strong(range, 0)) return;
  }
}

uint64_t own_ranges() { return reinterpret_cast<uint64_t>(ranges); }

OwnRange next_own_range(uintptr_t start, uintptr_t end) {
  OwnRange found = {0, 0};
  for (uint32_t i = 0; i < known(); ++i) {
    const uint64_t range = ranges[i].load(std::memory_order_relaxed);
    const uintptr_t low = range >> kCountBits << kPageBits;
    const uintptr_t high = low + ((range & ((1u << kCountBits) - 1)) << kPageBits);
    if (low == high || low >= end || high <= start) continue;
    if (found.end == 0 || low < found.start) found = {low, high};
  }
  return found;
}

uint64_t own_bytes_in(uintptr_t start, uintptr_t end) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < known(); ++i) {
    const uint64_t range = ranges[i].load(std::memory_order_relaxed);
    const uintptr_t low = range >> kCountBits << kPageBits;
    const uintptr_t high = low + ((range & ((1u << kCountBits) - 1)) << kPageBits);
    if (low < end && start < high) sum += std::min(high, end) - std::max(low, start);
  }
  return sum;
}

}  // namespace mtrace::sys
