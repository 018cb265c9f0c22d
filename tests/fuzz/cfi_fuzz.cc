// Call-frame information that is not what it should be: .eh_frame_hdr and .eh_frame of some object,
// and DWARF expressions. Everything that the walker does with them.
//
// The first byte says what the rest is: bit 0 an expression, else tables; bit 1 with a hole in the
// readable memory; bit 2 tables without .eh_frame_hdr's. The tables end at memory that cannot be
// read, and what is before them is poisoned.
#include <sanitizer/asan_interface.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "cfi/frame_registers.h"
#include "cfi/row.h"
#include "modules/object.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_memory.h"

namespace {

namespace cfi = mtrace::cfi;
namespace modules = mtrace::modules;
using namespace mtrace::unwind;

constexpr size_t kPage = 4096;
constexpr size_t kMost = 16 * kPage;

// Always at the same place, so that an input means the same every time.
char* memory() {
  static char* const pages = [] {
    void* wanted = reinterpret_cast<void*>(uintptr_t{0x200000000000});
    void* got = mmap(wanted, kMost + kPage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != wanted) __builtin_trap();
    mprotect(static_cast<char*>(got) + kMost, kPage, PROT_NONE);
    return static_cast<char*>(got);
  }();
  return pages;
}

const uintptr_t g_stack[64] = {1, 2, 3};
constexpr uintptr_t kMiddle = 128;  // bytes into the stack where all registers point

cfi::FrameRegisters machine() {
  cfi::FrameRegisters machine = {};
  for (unsigned reg = 0; reg < cfi::kRegisters; ++reg) {
    machine.set(reg, reinterpret_cast<uintptr_t>(g_stack) + kMiddle);
  }
  return machine;
}

StackMemory stack() {
  const auto low = reinterpret_cast<uintptr_t>(g_stack);
  return StackMemory({low, low + sizeof g_stack}, low);
}

void use(const modules::Object& object, uintptr_t pc) {
  cfi::Fde fde;
  cfi::Row row;
  if (!cfi::find_fde(object.bounds, object.eh_frame_hdr, pc, &fde)) return;
  if (pc < fde.pc_begin || pc >= fde.pc_end) __builtin_trap();
  if (!cfi::find_row(object.bounds, fde, pc, &row)) return;
  pack_rule(object, row);
  cfi::FrameRegisters registers = machine();
  StackMemory words = stack();
  step_by_row(object.bounds, row, &registers, &words);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const unsigned flags = data[0];
  ++data;
  size = std::min(size - 1, kMost);
  char* const begin = memory() + kMost - size;
  ASAN_UNPOISON_MEMORY_REGION(memory(), kMost);
  memcpy(begin, data, size);
  ASAN_POISON_MEMORY_REGION(memory(), kMost - size);
  const auto start = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t end = start + size;

  modules::Object object;
  object.start = start;
  object.end = end;
  object.eh_frame_hdr = (flags & 4) != 0 ? 0 : start;
  if ((flags & 2) != 0 && size > 64) {
    const uintptr_t hole = start + size / 2 / 8 * 8;
    object.bounds.add(start, hole);
    object.bounds.add(hole + 16, end);
    ASAN_POISON_MEMORY_REGION(reinterpret_cast<void*>(hole), 16);
  } else {
    object.bounds.add(start, end);
  }

  if ((flags & 1) != 0) {
    StackMemory words = stack();
    const uintptr_t initial = reinterpret_cast<uintptr_t>(g_stack) + kMiddle;
    uintptr_t result = 0;
    evaluate(object.bounds, start, &initial, machine(), &words, &result);
    evaluate(object.bounds, start, nullptr, machine(), &words, &result);
    return 0;
  }
  // What the table names, and where the functions of the seeds made by hand are.
  for (size_t at = 12; at + 4 <= std::min<size_t>(size, 12 + 8 * 8); at += 8) {
    int32_t relative = 0;
    if (object.bounds.contains(start + at, 4)) memcpy(&relative, begin + at, 4);
    for (const uintptr_t further : {0, 1, 4, 0x33}) {
      use(object, start + static_cast<intptr_t>(relative) + further);
    }
  }
  for (uintptr_t pc = 0; pc < 0x140; pc += 7) use(object, start - 0x10000 + pc);
  return 0;
}
