// Records in the memory that the process shares with the writer of its event log
// (format/event_ring.h, doc/events.md).
//
// Thread-safe; async-signal-safe; leaves errno alone. A ring is written by one thread; its signal
// handlers may come between at any moment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/stamp.h"
#include "format/event_ring.h"

namespace mtrace::events {

using format::EventRecord;
using format::EventRing;
using format::EventUnit;

// The memory; nullptr: there never was a log. Then nothing else here may be called.
[[gnu::visibility("hidden")]] extern format::EventRingHeader* g_header;

// Maps the rings of a file in memory that has its final size: see ring_file_size().
bool map_rings(int fd, uint32_t rings);
uint64_t ring_file_size(uint32_t rings);
// In the child of a fork, alone: what is written from now on goes nowhere, and not to the parent's
// writer.
void leave_rings();
// After leave_rings(): gives the memory back.
void unmap_rings();

// Forgets how many events each ring got: the log is a new one. `child`: after these were stored in
// `header`, for the reader of a fork's child, whose copy of them is from the moment of the fork.
void count_anew(format::EventRingHeader& header, bool child);
// The ring is another thread's from now on.
void count_thread(uint32_t ring, uint32_t tid);

// The ring of a slot of the ledger. kNoRing: it has none, and there is a turn to wait for.
inline constexpr uint32_t kNoRing = 0;
uint32_t ring_of(uint32_t slot);

// A record being written. Without room in the ring, it is lost and counted.
class Record {
 public:
  // Of so many units, in the ring with that number; kNoRing: in the one for all others, for which
  // it waits. `marks`: no event is lost with it.
  Record(uint32_t ring, unsigned units, bool marks = false);
  ~Record();
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  // False: there is no room. Nothing else may be called then.
  explicit operator bool() const { return ring_ != nullptr; }
  EventUnit& unit(unsigned number) { return ring_->units[(at_ + number) % format::kEventUnits]; }
  // Bytes from the beginning of unit `first` on.
  void put_bytes(unsigned first, size_t offset, const void* from, size_t size);
  // Publishes the record, stamped with the time of its constructor, or with `facts` instead.
  void commit(EventRecord kind, uint64_t low, unsigned call = 0);
  void commit_facts(EventRecord kind, uint64_t low, uint64_t facts);

 private:
  void reserve(unsigned units, bool marks);

  EventRing* ring_ = nullptr;
  uint32_t number_;  // of the ring
  uint64_t at_ = 0;
  uint64_t stamp_ = 0;
  bool shared_ = false;
  uint64_t mask_ = 0;
};

// Events that found no room.
uint64_t lost_events();

}  // namespace mtrace::events
