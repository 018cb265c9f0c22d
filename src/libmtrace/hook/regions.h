// The program's mappings as entries of the kind "mmap" (MTRACE_MMAP). Thread-safe;
// async-signal-safe; leaves errno alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "ledger/ledger.h"
#include "ledger/region_table.h"
#include "unwind/walker.h"

namespace mtrace::hook {

extern bool g_watching_regions;
// False: the hooks only call on.
inline bool watching_regions() { return load(g_watching_regions); }
// From now on they are recorded. For the start of the library.
void watch_regions();
void stop_watching_regions();

// `bytes` have been mapped at `start`, by the caller. Both are of whole pages.
void record_region(uintptr_t start, size_t bytes, uint8_t call, const unwind::Registers& caller);

// Addresses whose mappings are about to end: taken out before the call that ends them, because
// after it another thread may be given the same addresses. One of succeeded() and failed() follows.
class RegionsEnd {
 public:
  // Nothing where the kernel would not accept the range.
  void begin(uintptr_t start, size_t bytes);
  void succeeded();
  // What is mapped still is as it was: a call may have ended mappings before it failed.
  void failed();

 private:
  ledger::Pieces pieces_;
  uint32_t births_ = load(ledger::g_births);
};

}  // namespace mtrace::hook
