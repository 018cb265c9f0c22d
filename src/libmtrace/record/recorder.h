// What happens at one allocation and one free. doc/internals/malloc.md follows malloc and free step
// by step.
//
// All functions are thread-safe and async-signal-safe, leave errno alone and take no lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "ledger/ledger.h"
#include "ledger/region_table.h"
#include "record/sampler.h"
#include "record/thread_state.h"
#include "unwind/walker.h"

namespace mtrace::record {

using ledger::Call;

// The hooks of malloc and free jump to one of each, by g_path. Without optimisation, compilers make
// them calls.
void* exact_malloc(size_t size);    // records each block
void* sampled_malloc(size_t size);  // records where a sample falls (MTRACE_SAMPLE)
void* checked_malloc(size_t size);  // fills the block (MTRACE_FILL); records it, or a sample
void exact_free(void* block);
void sampled_free(void* block);
void checked_free(void* block);

// nullptr: the real functions are not known yet; then the hooks use memory of the library's own
// (next/next_functions.h). Written while the process has one thread, but for the step from
// sampled_malloc() to checked_malloc(), which any thread may make at any time.
struct Path {
  void* (*malloc)(size_t size);
  void (*free)(void* block);
};
[[gnu::visibility("hidden")]] extern Path g_path;

// A hook calls this before the real function: a hook nested in that call that counts the block
// marks it, and the block is counted once.
inline void before_call() {
  t_thread.counted = nullptr;
  if (samples()) t_thread.before_call = t_thread.until_sample;
}

// Records `block`, which a call for `size` bytes returned (nullptr: it failed), unless a nested
// hook has recorded it, or no sample falls into it. Returns the block. `moved`: the block at which
// a realloc was logged to begin (Reallocation::moved()). By values, like all below: a hook that
// passes an object needs a frame, even where it only jumps.
void* record_block(void* block, size_t size, Call call, unwind::Caller caller,
                   const void* moved = nullptr);

// Takes `block` out of the ledger. Call it before the real free: once the real allocator has the
// block, another thread may be given the same address. False: it was not there, which is counted.
bool forget(void* block, Call call, unwind::Caller caller);
// The same where there may be no block. False: none is known there.
bool forget_known(void* block, Call call);
// Frees of unknown blocks have entries with their stacks, of the kind `unknown-free`
// (MTRACE_UNKNOWN=stacks).
[[gnu::visibility("hidden")]] extern bool g_unknown_frees_have_stacks;
// Events of frees have their stack (MTRACE_EVENTS_FREE_STACKS).
extern bool g_free_stacks;

// A realloc under way: the old block is out of the ledger, its slot in the hash table reserved. In
// the event log it begins and, where it fails, ends.
class Reallocation {
 public:
  Reallocation(void* block, unwind::Caller caller);
  void failed();     // the old block is as it was
  void succeeded();  // the old block is gone; record_block() follows for the new one
  // The old block, if the begin was logged; for record_block().
  const void* moved() const { return logged_ ? reinterpret_cast<void*>(address_) : nullptr; }
  size_t old_size() const { return block_.size; }  // requested bytes; 0: not known

 private:
  uintptr_t address_;
  ledger::Block block_ = {};
  uint64_t slack_ = 0;
  ledger::BlockTable::Reserved reserved_;
  uint32_t births_ = load(ledger::g_births);
  bool logged_;
};

// The slot of the calling thread in the ledger; 0: none.
uint32_t this_slot();

// From now on a block that was freed unseen counts as freed once its address comes back. Before the
// first block is counted.
void count_missed_frees();

// Blocks freed within this time count as short-lived.
void set_short_lived(uint64_t milliseconds);

// ---- Whether this process records blocks: one word, which a hook reads by one load.
//
//   word         new blocks   frees of known ones   event log
//   kUndecided   as decided by counting_slowly(): not started, or a fork's child
//   kRecording   recorded     taken out             none
//   kStopped     go unseen    taken out             as before
//   kLogging     recorded     taken out             written
//   kFull        lost         taken out             none (MTRACE_MAX_MEMORY)

// The word lies in a page that reads as zero after fork, so that one load answers both "are we on?"
// and "are we a new process?".
enum Counting : uint64_t { kUndecided = 0, kRecording = 1, kStopped = 2, kLogging = 3, kFull = 4 };
[[gnu::visibility("hidden")]] extern const uint64_t* g_counting;

// Makes `word` the one to read. `set_up_child` is called in a fork's child, where the word is
// kUndecided. nullptr: the process counts nothing from now on.
void count_by(const uint64_t* word, void (*set_up_child)());

// True: blocks of this process are taken out of the ledger when they are freed, after doing what
// a new process has to do first. Kept out of the hot path.
bool counting_slowly();
inline bool counting() { return load(*g_counting) == kRecording || counting_slowly(); }
// True: and new ones are put in.
bool recording_slowly();
inline bool recording() { return load(*g_counting) == kRecording || recording_slowly(); }

// ---- The program's mappings as entries of the kind "mmap" (MTRACE_MMAP), and the calls that end
// them as entries of the kind "munmap" (MTRACE_MMAP=2). Thread-safe; async-signal-safe; leaves
// errno alone.

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
