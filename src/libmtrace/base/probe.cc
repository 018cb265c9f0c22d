#include "base/probe.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>

#include "base/filters.h"
#include "base/process.h"
#include "base/syscall.h"

namespace mtrace::base {
namespace {

constexpr uintptr_t kUserEnd = uintptr_t{1} << machine::kUserBits;

std::atomic<bool> vm_readv_forbidden{false};
std::atomic<bool> filtered{false};

// For valgrind, which answers the call in word_readable() only with a message.
bool byte_readable(uintptr_t address) {
  char byte;
  const iovec local{&byte, 1};
  const iovec remote{reinterpret_cast<void*>(address), 1};
  return call(SYS_process_vm_readv, call(SYS_gettid), &local, 1L, &remote, 1L, 0L) == 1;
}

// rt_sigprocmask copies the new set in before it looks at `how`, so an invalid `how` tells
// readable memory (EINVAL) from unreadable memory (EFAULT) and changes nothing.
bool word_readable(uintptr_t address) {
  constexpr long kInvalidHow = 0x7fff;
  constexpr long kSetSize = 8;
  if (on_valgrind()) return byte_readable(address);
  return call(SYS_rt_sigprocmask, kInvalidHow, address, 0L, kSetSize) != -EFAULT;
}

}  // namespace

bool readable(uintptr_t start, size_t bytes) {
  if (bytes == 0) return true;
  if (start >= kUserEnd || bytes > kUserEnd - start || makes_no_calls()) return false;
  // An aligned word stands for its page; not the page's first, because to the kernel a set at
  // address 0 is no set.
  for (uintptr_t page = page_start(start); page < start + bytes; page += machine::page_bytes()) {
    if (!word_readable(page + sizeof(uintptr_t))) return false;
  }
  return true;
}

bool mapped(uintptr_t start, size_t bytes) {
  const uintptr_t first = page_start(start);
  // Since Linux 2.6.19 MS_ASYNC does nothing but check the range.
  return call(SYS_msync, first, bytes + (start - first), MS_ASYNC) != -ENOMEM;
}

size_t resident_bytes(uintptr_t start, size_t bytes) {
  unsigned char pages[512];
  const size_t page = machine::page_bytes();
  size_t sum = 0;
  for (size_t at = 0; at < bytes; at += sizeof pages * page) {
    const size_t part = std::min(bytes - at, sizeof pages * page);
    const bool known = find_resident(start + at, part, pages);
    for (size_t i = 0; i < whole_pages(part) / page; ++i) sum += known ? pages[i] * page : page;
  }
  return sum;
}

bool find_resident(uintptr_t start, size_t bytes, unsigned char* pages) {
  if (may_be_filtered() || call(SYS_mincore, start, bytes, pages) != 0) return false;
  for (size_t i = 0; i < whole_pages(bytes) / machine::page_bytes(); ++i) pages[i] &= 1;
  return true;
}

void only_probe() {
  filtered.store(true, std::memory_order_relaxed);
  vm_readv_forbidden.store(true, std::memory_order_relaxed);
}
bool may_be_filtered() { return filtered.load(std::memory_order_relaxed); }

bool read_memory(uintptr_t from, void* to, size_t bytes) {
  if (from >= kUserEnd || bytes > kUserEnd - from || makes_no_calls()) return false;
  if (!vm_readv_forbidden.load(std::memory_order_relaxed)) {
    const iovec local{to, bytes};
    const iovec remote{reinterpret_cast<void*>(from), bytes};
    // Of this thread: the first may have ended. Read each time: a cached id would be the parent's
    // in a fork child.
    const long thread = call(SYS_gettid);
    const long result = call(SYS_process_vm_readv, thread, &local, 1L, &remote, 1L, 0L);
    if (result == static_cast<long>(bytes)) return true;
    if (result != -EPERM && result != -ENOSYS && result != -EACCES) return false;
    vm_readv_forbidden.store(true, std::memory_order_relaxed);
  }
  if (!readable(from, bytes)) return false;
  memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return true;
}

bool read_resident(uintptr_t from, void* to, size_t bytes) {
  const uintptr_t start = page_start(from);
  const size_t pages = whole_pages(from + bytes - start);
  return mapped(start, pages) && resident_bytes(start, pages) >= pages &&
         read_memory(from, to, bytes);
}

bool read_string(uintptr_t from, char* to, size_t size) {
  size_t done = 0;
  while (done < size) {
    // Never across a page: the string may end just before an unmapped one.
    const size_t part =
        std::min(page_start(from + done) + machine::page_bytes() - (from + done), size - done);
    if (!read_memory(from + done, to + done, part)) return false;
    if (memchr(to + done, '\0', part) != nullptr) return true;
    done += part;
  }
  return false;
}

}  // namespace mtrace::base
