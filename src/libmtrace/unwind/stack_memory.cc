#include "unwind/stack_memory.h"

#include <string.h>

#include <atomic>

#include "base/probe.h"
#include "base/process.h"
#include "modules/c_library.h"

namespace mtrace::unwind {
namespace internal {
thread_local constinit ThreadStack thread_stack = {};
}

namespace {

// Deeper than any real stack grows between two allocations; bounds the time of one extension.
constexpr uintptr_t kMaxExtension = uintptr_t{1} << 30;

// The thread control block of the main thread, once known. In a fork child of another thread that
// thread is the "main" one by its id, but its stack still ends at its own control block.
std::atomic<uintptr_t> main_control_block{0};

// How far a walk follows another stack directly. A system call a page: what is farther is copied.
constexpr uintptr_t kMaxOther = 64 * 1024;

uintptr_t upper_end(uintptr_t sp) {
  const uintptr_t control_block = machine::thread_control_block();
  uintptr_t main = main_control_block.load(std::memory_order_relaxed);
  if (main == 0 && base::thread_id() == base::process_id()) {
    main = control_block;
    main_control_block.store(main, std::memory_order_relaxed);
  }
  const uintptr_t end =
      control_block == main ? modules::main_stack_end() : modules::thread_stack_end();
  return sp <= end ? end : 0;
}

}  // namespace

StackRange trust_stack(uintptr_t sp) {
  internal::ThreadStack& stack = internal::thread_stack;
  const StackRange trusted = trusted_stack();
  // A program that allocates on another stack does so again and again.
  if (covers(trusted, sp) || stack.foreign == sp >> 16 || sp < stack.gap) return trusted;
  const uintptr_t high = stack.high != 0 ? stack.high : upper_end(sp);
  // The stack pointer of a walk's outermost frame may be the very end. Recorded as foreign, it
  // would keep the rest of the stack's last 64 KiB from being trusted.
  if (sp == high) return trusted;
  const uintptr_t from = trusted.low != trusted.high ? trusted.low : high;
  const uintptr_t low = base::page_start(sp);
  if (low < from && from - low <= kMaxExtension) {
    // Downwards: the gap above a foreign stack is found at once.
    uintptr_t page = base::page_start(from - 1);
    while (page > low && base::readable(page, 1)) page -= machine::page_bytes();
    if (page == low && base::readable(page, 1)) {
      stack.high = high;
      stack.low = low;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      stack.size = high - low;
      return {low, high};
    }
    // Recorded, so that it is found once a thread and not at each switch of fibers: a guard page
    // stays. (Below the main thread's stack are only pages that it has not grown to yet.)
    if (high != modules::main_stack_end()) stack.gap = page + machine::page_bytes();
  }
  stack.foreign = sp >> 16;
  return trusted;
}

void StackMemory::find_stack(uintptr_t sp) {
  trusted_ = trust_stack(sp);
  if (covers(trusted_, sp)) return;
  other_ = {sp, sp};
  extend_other(sp, 1);
}

// Extends other_ to `address` + `size`. False: the range begins below other_.low, ends too far
// above it, or has an unreadable page.
bool StackMemory::extend_other(uintptr_t address, unsigned size) {
  const uintptr_t end = address + size;
  if (other_.low == 0 || address < other_.low || end < address || end - other_.low > kMaxOther) {
    return false;
  }
  while (other_.high < end) {
    const uintptr_t page = base::page_start(other_.high);
    if (!base::readable(page, 1)) return false;
    other_.high = page + machine::page_bytes();
  }
  return true;
}

bool StackMemory::read_above(uintptr_t sp, uintptr_t address, uintptr_t* value) {
  const bool own = covers(trusted_, sp);
  const bool inside = own ? covers(trusted_, address) && trusted_.high - address >= sizeof *value
                          : extend_other(address, sizeof *value);
  if (address < sp || !inside) return false;
  memcpy(value, reinterpret_cast<const void*>(address), sizeof *value);
  return true;
}

bool StackMemory::read_sized(uintptr_t address, unsigned size, uintptr_t* value) {
  uintptr_t word = 0;
  if ((covers(trusted_, address) && trusted_.high - address >= size) ||
      extend_other(address, size)) {
    memcpy(&word, reinterpret_cast<const void*>(address), size);
  } else if (!base::read_memory(address, &word, size)) {
    return false;
  }
  *value = word;
  return true;
}

}  // namespace mtrace::unwind
