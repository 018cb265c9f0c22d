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

namespace mtrace::record {

// Consumers of mappings: the reports (MTRACE_MMAP), the event log.
enum MappingWatcher : uint8_t { kReportsWatch = 1, kEventsWatch = 2 };
extern uint8_t g_mapping_watchers;
// False: the hooks only call the real functions.
inline bool watching_mappings() { return load(g_mapping_watchers) != 0; }
inline bool watching_regions() { return (load(g_mapping_watchers) & kReportsWatch) != 0; }
// Starts recording mappings and, with `ends`, the calls that end them. At the library's start.
void watch_regions(bool ends);
void stop_watching_regions();
void watch_mappings_for_events(bool on);

// Records that the caller has mapped `bytes` at `start`; both are of whole pages. `form`: for mmap,
// protection and flags (format/mapping_form.h); for mremap 0, because it keeps them.
void record_region(uintptr_t start, size_t bytes, uint8_t call, uint32_t form,
                   const unwind::Registers& caller);

// Logs a new mapping, or one that was at `old` before.
void log_mapping(uintptr_t start, size_t bytes, const unwind::Registers& caller);
void log_remapping(uintptr_t old, size_t old_bytes, uintptr_t start, size_t bytes,
                   const unwind::Registers& caller);
// Logs the end of mappings. Call it before munmap.
void log_unmapping(uintptr_t start, size_t bytes, uint8_t call, const unwind::Registers& caller);

// Mappings that a call is about to end. begin() comes before the call, finish() after it.
class RegionsEnd {
 public:
  // No mappings, if the kernel would not accept the range.
  void begin(uintptr_t start, size_t bytes);
  // `good`: `call` (format/calls.h) of `caller` has ended the mappings. After a call that failed,
  // keeps what is still mapped, since it may have ended some.
  void finish(bool good, uint8_t call, const unwind::Registers& caller);

 private:
  ledger::RegionTable::Ending ending_ = {};
};

}  // namespace mtrace::record
