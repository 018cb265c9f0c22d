#include "base/own_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/file.h"
#include "base/probe.h"
#include "base/syscall.h"
#include "format/ledger.h"

namespace mtrace::base {

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

// Calls visit(low, high) for each range, as far as it lies in [start, end).
template <typename Visit>
void each_in(uintptr_t start, uintptr_t end, const Visit& visit) {
  for (uint32_t i = 0; i < known(); ++i) {
    const uint64_t range = ranges[i].load(std::memory_order_relaxed);
    const uintptr_t low = range >> kCountBits << kPageBits;
    const uintptr_t high = low + ((range & ((1u << kCountBits) - 1)) << kPageBits);
    if (low < end && start < high) visit(std::max(low, start), std::min(high, end));
  }
}

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

uint64_t own_bytes_in(uintptr_t start, uintptr_t end) {
  uint64_t sum = 0;
  each_in(start, end, [&](uintptr_t low, uintptr_t high) { sum += high - low; });
  return sum;
}

bool write_own_word(uintptr_t address, uint64_t value) {
  const long fd = open_to_change("/proc/thread-self/mem");
  const long wrote = call(SYS_pwrite64, fd, &value, sizeof value, address);
  if (!failed(fd)) close_file(static_cast<int>(fd));
  return wrote == sizeof value;
}

// Bounds of this library's image, from the linker.
}  // namespace mtrace::base

extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start;
extern "C" [[gnu::visibility("hidden")]] const char _end;

namespace mtrace::base {

bool g_keeps_unlocked = false;

namespace {

struct Part {
  uintptr_t start;
  uintptr_t end;
  bool own;
};

Part image() {
  const auto begin = page_start(reinterpret_cast<uintptr_t>(&__ehdr_start));
  const auto end = whole_pages(reinterpret_cast<uintptr_t>(&_end));
  return {begin, end, true};
}

// The first part of [start, end) that belongs to this library alone or to the program alone.
Part first_part(uintptr_t start, uintptr_t end) {
  Part own = {end, end, true};
  const auto compare = [&](uintptr_t low, uintptr_t high) {
    if (low < own.start) own = {low, high, true};
  };
  each_in(start, end, compare);
  const Part lib = image();
  if (lib.start < end && start < lib.end) {
    compare(std::max(lib.start, start), std::min(lib.end, end));
  }
  return own.start > start ? Part{start, own.start, false} : own;
}

uintptr_t read_hex(const char*& at) {
  uintptr_t number = 0;
  for (;; ++at) {
    const int digit = *at >= '0' && *at <= '9'   ? *at - '0'
                      : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10
                                                 : -1;
    if (digit < 0) return number;
    number = number << 4 | static_cast<uintptr_t>(digit);
  }
}

// Calls visit(part) for all that is mapped. False: /proc cannot be read, or no memory.
template <typename Visit>
bool each_part(const Visit& visit) {
  struct Scratch {
    char text[16384];
  };
  const long file = open_to_read("/proc/thread-self/maps");
  if (failed(file)) return false;
  auto* const scratch = static_cast<Scratch*>(map_memory(sizeof(Scratch)));
  if (scratch != nullptr) {
    each_line(static_cast<int>(file), scratch->text, [&](const char* line, size_t) {
      uintptr_t start = read_hex(line);
      if (*line == '-') ++line;
      const uintptr_t end = read_hex(line);
      const bool tables = strstr(line, format::kLedgerSuffix) != nullptr ||
                          strstr(line, "/memfd:mtrace") != nullptr;
      while (start < end) {
        const Part part = tables ? Part{start, end, true} : first_part(start, end);
        visit(part);
        start = part.end;
      }
      return true;
    });
    unmap_memory(scratch, sizeof(Scratch));
  }
  close_file(static_cast<int>(file));
  return scratch != nullptr;
}

}  // namespace

void keep_unlocked() { __atomic_store_n(&g_keeps_unlocked, true, __ATOMIC_RELAXED); }

// Maps one page, unlocks it and enlarges it: a mapping that grows keeps its own lock state, not
// that of new ones (mm/mremap.c), and only locked memory counts.
long map_unlocked(void* address, size_t bytes, int protection, int flags, int fd, long offset) {
  if ((flags & MAP_FIXED_NOREPLACE) == 0) {
    const size_t one = machine::page_bytes();
    const long page = call(SYS_mmap, nullptr, one, protection, flags & ~MAP_FIXED, fd, offset);
    if (failed(page)) return page;
    call(SYS_munlock, page, one);
    const int fixed = (flags & MAP_FIXED) != 0 ? MREMAP_FIXED : 0;
    const long whole = call(SYS_mremap, page, one, bytes, MREMAP_MAYMOVE | fixed, address);
    if (!failed(whole)) return whole;
    call(SYS_munmap, page, one);
  }
  const long whole = call(SYS_mmap, address, bytes, protection, flags, fd, offset);
  if (!failed(whole)) call(SYS_munlock, whole, bytes);
  return whole;
}

bool lock_limit_fits_program() {
  rlimit64 limit = {RLIM64_INFINITY, RLIM64_INFINITY};
  call(SYS_prlimit64, 0, RLIMIT_MEMLOCK, nullptr, &limit);
  uint64_t bytes = 0;
  const bool known = each_part([&](const Part& part) {
    if (!part.own) bytes += part.end - part.start;
  });
  return known && bytes <= limit.rlim_cur;
}

// Ignores other errors, as mlockall(2) does: pages without any access.
bool lock_programs_memory(bool on_fault) {
  bool allowed = true;
  const bool known = each_part([&](const Part& part) {
    const size_t bytes = part.end - part.start;
    if (part.own) {
      call(SYS_munlock, part.start, bytes);
    } else {
      const long result = call(SYS_mlock2, part.start, bytes, on_fault ? MLOCK_ONFAULT : 0);
      allowed &= result != -EPERM && result != -ENOSYS;
    }
  });
  return known && allowed;
}

}  // namespace mtrace::base
