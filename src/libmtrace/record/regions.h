// The program's mappings as entries of the kind "mmap" (MTRACE_MMAP), and the calls that end them
// as entries of the kind "munmap" (MTRACE_MMAP=2). Thread-safe; async-signal-safe; leaves errno
// alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "ledger/ledger.h"
#include "ledger/region_table.h"
#include "unwind/walker.h"

namespace mtrace::hook {

// Who wants to know of mappings: the reports (MTRACE_MMAP), the event log.
enum MappingWatcher : uint8_t { kReportsWatch = 1, kEventsWatch = 2 };
extern uint8_t g_mapping_watchers;
// False: the hooks only call on.
inline bool watching_mappings() { return load(g_mapping_watchers) != 0; }
inline bool watching_regions() { return (load(g_mapping_watchers) & kReportsWatch) != 0; }
// From now on they are recorded, and their ends as well if asked for. For the start of the library.
void watch_regions(bool ends);
void stop_watching_regions();
void watch_mappings_for_events(bool on);

// `bytes` have been mapped at `start`, by the caller. Both are of whole pages. `form`: of mmap, its
// protection and flags (format/mapping_form.h); of mremap 0, as it keeps what is there.
void record_region(uintptr_t start, size_t bytes, uint8_t call, uint32_t form,
                   const unwind::Registers& caller);

// The same, for the event log; of a mapping that was at `old` before.
void log_mapping(uintptr_t start, size_t bytes, const unwind::Registers& caller);
void log_remapping(uintptr_t old, size_t old_bytes, uintptr_t start, size_t bytes,
                   const unwind::Registers& caller);
// Before the call.
void log_unmapping(uintptr_t start, size_t bytes);

// Addresses whose mappings are about to end: taken out before the call that ends them, because
// after it another thread may be given the same addresses. One of succeeded() and failed() follows.
class RegionsEnd {
 public:
  // Nothing where the kernel would not accept the range.
  void begin(uintptr_t start, size_t bytes);
  // `call` (format/calls.h) of the caller has ended them.
  void succeeded(uint8_t call, const unwind::Registers& caller);
  // What is mapped still is as it was: a call may have ended mappings before it failed.
  void failed();

 private:
  ledger::Pieces pieces_;
  uint32_t births_ = load(ledger::g_births);
};

}  // namespace mtrace::hook
