// Records in the memory that the process shares with the writer of its event log
// (format/event_ring.h, doc/internals/events.md).
//
// Thread-safe; async-signal-safe; leaves errno alone. One thread writes to a ring; its signal
// handlers may interrupt it at any moment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/turn.h"
#include "format/event_ring.h"

namespace mtrace::events {

using format::EventRecord;
using format::EventRing;
using format::EventUnit;

// The shared memory; nullptr: there is no log. Then no record may be written.
[[gnu::visibility("hidden")]] extern format::EventRingHeader* g_header;

// Maps the rings of a memory file of ring_file_size(rings) bytes. False: no memory.
bool map_rings(int fd, uint32_t rings);
uint64_t ring_file_size(uint32_t rings);
// In the single-threaded child of a fork: replaces the rings by private memory, so that records no
// longer reach the parent's writer.
void leave_rings();
// Call after leave_rings(): unmaps the memory.
void unmap_rings();

// For a new log: sets the number of events of each ring to 0. `child`: first stores the numbers, a
// fork's child's copy from the moment of the fork, in `header` for readers of its log.
void count_anew(format::EventRingHeader& header, bool child);
// Thread `tid` writes to the ring from now on: its number of events starts at 0.
void count_thread(uint32_t ring, uint32_t tid);

// The ring of a slot of the ledger. kNoRing: the slot has none and uses the shared ring.
inline constexpr uint32_t kNoRing = 0;
uint32_t ring_of(uint32_t slot);

// A record being written. Without room in the ring, the record is lost and counted.
class Record {
 public:
  // Reserves `units` units in a ring; kNoRing: in the shared ring, for which threads take turns.
  // `marks`: the record is no event, and is not counted when it is lost.
  Record(uint32_t ring, unsigned units, bool marks = false);
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  // False: there is no room, and no other function may be called.
  explicit operator bool() const { return ring_ != nullptr; }
  EventUnit& unit(unsigned number) { return ring_->units[(at_ + number) % format::kEventUnits]; }
  // Copies bytes to the record, from unit `first` on.
  void put_bytes(unsigned first, const void* from, size_t size);
  // Publishes the record, stamped with the time of its constructor.
  void commit(EventRecord kind, uint64_t low, unsigned call = 0);

 private:
  void reserve(unsigned units, bool marks);

  EventRing* ring_ = nullptr;
  uint32_t number_;  // of the ring
  uint64_t at_ = 0;
  uint64_t stamp_ = 0;
  base::Turn turn_;  // at the shared ring
};

// Number of events that found no room.
uint64_t lost_events();

}  // namespace mtrace::events
