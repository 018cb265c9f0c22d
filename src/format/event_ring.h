// The memory in which a traced process leaves its events for the writer of its event log
// (MTRACE_EVENTS): a header and a ring for each thread, in a file without a name that both map.
// What the process is and what its stacks are, the writer reads from the process's ledger
// (format/ledger.h). doc/internals/events.md has the protocol. The writer must validate every
// number before using it: the program can write here by mistake.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mtrace::format {

inline constexpr uint64_t kEventRingMagic = 0x33474e4952'56454du;  // "MEVRING3"

// The unit of memory, 16 bytes. A record has one or more, and may continue at the start of the
// ring.
struct EventUnit {
  uint64_t a;
  uint64_t b;
};
inline constexpr uint64_t kEventUnits = 4096;  // of a ring: 64 KiB
inline constexpr uint64_t kEventWake = 1024;   // units after which the writer is woken

// Kinds of records. In the first unit, unless noted below, `a` is the stamp and `b` the word: bits
// 0 to 44 an address divided by 8; 45 to 48 the call (ledger::Call); 49 to 55 the kind; 56 to 63
// the lap (event_lap()). The word is written last. `place` stands for a unit with a = requested
// bytes, b = stack index + (usable - requested) << 32.
enum class EventRecord : uint8_t {
  kReserved = 1,    // being written; bits 0 to 44: its units
  kSkipped = 2,     // bits 0 to 44: its units; no event
  kAllocation = 3,  // address; place
  kFree = 4,        // address; also for kUnknownFree, kReallocBegin and kReallocFailed
  kUnknownFree = 5,
  kReallocBegin = 6,
  kReallocFailed = 7,
  kRealloc = 8,        // address; place; old address, 0
  kFreeWithStack = 9,  // address; 0, stack index
  kUnknownFreeWithStack = 10,
  kMap = 11,     // address; bytes, stack index
  kUnmap = 12,   // address; bytes, stack index or 0
  kRemap = 13,   // address; bytes, stack index; old address, old bytes
  kThread = 14,  // the ring is this thread's from now on; bits 0 to 44: its id
  kStart = 15,
  kStop = 16,
  kReport = 17,  // bits 0 to 44: its number; length of its label, 0; label
  kNote = 18,    // length, 0; text
  kFork = 19,    // bits 0 to 44: the number of the fork in this process, from 1
  kLast = kFork,
};
inline constexpr uint64_t kEventLowBits = (uint64_t{1} << 45) - 1;
inline constexpr unsigned kEventCallShift = 45;
inline constexpr unsigned kEventKindShift = 49;
inline constexpr unsigned kEventLapShift = 56;
constexpr EventRecord event_kind(uint64_t word) {
  constexpr uint64_t kBits = (1 << (kEventLapShift - kEventKindShift)) - 1;
  return static_cast<EventRecord>(word >> kEventKindShift & kBits);
}

// Differs from that of the record that was in its place a lap before. Never 0.
constexpr uint64_t event_lap(uint64_t position) { return position / kEventUnits % 128 + 128; }

// Written by the thread that owns the ring, except `taken`.
struct alignas(64) EventRing {
  uint64_t reserved;    // units reserved since the start
  uint64_t taken_seen;  // `taken` as the thread saw it last
  uint64_t lost;        // events that found no room
  uint64_t unused[5];
  alignas(64) uint64_t taken;  // units that the writer has read; written by the writer
  alignas(64) EventUnit units[kEventUnits];
};

// A thread of the parent at the fork: how many events it had written to its log by then, according
// to the child's copy of the parent's memory.
struct EventThreadAtFork {
  uint32_t tid;  // 0: all threads without a ring of their own
  uint32_t unused;
  uint64_t events;
};

enum class EventsState : uint32_t {
  kRunning = 0,
  kEnded = 1,     // the process exits
  kReplaced = 2,  // the process calls exec
  kDetached = 3,  // memlog detaches
};

struct EventRingHeader {
  uint64_t magic;    // written last
  uint32_t rings;    // number of rings: the first for events of no thread, or of a thread without a
                     // slot; the others for the slots of the ledger
  uint32_t counter;  // 1: stamps are of the time stamp counter; 0: they are nanoseconds
  uint64_t zero_stamp;   // a stamp
  uint64_t zero_real;    // nanoseconds since 1970, read at the same moment
  uint64_t parent_time;  // nanoseconds since 1970: the fork
  uint32_t cull;         // milliseconds: blocks that live shorter are left out of the log; 0: none
  uint32_t rings_used;   // rings with numbers below this may hold something
  EventsState state;     // written by the program
  uint32_t drop;         // 1: the program never waits
  // The writer waits on `bell`, if `sleeping`, and the program on `taken`, if `waiting`.
  uint32_t bell;
  uint32_t sleeping;
  uint32_t taken;  // incremented when the writer has read units
  uint32_t waiting;
  uint32_t gave_up;  // 1: the program does not wait any more; the writer clears it
  uint32_t done;     // 1: the writer has finished the log, 2: it had to give up
  int32_t error;     // errno of that
  uint32_t writer;   // its pid
  uint64_t lost;     // events of threads that could not get at the first ring
  char place[4096];  // of the log: a directory, if it ends with a slash, or a file
  char parent_log[4096];
  char log[4096];  // path of the log that the writer has opened
  // Of a fork's child:
  uint32_t parent_fork;      // number of the fork in the parent's log; 0: not logged there
  uint32_t threads_at_fork;  // entries of at_fork in use
  EventThreadAtFork at_fork[4104];
  // Of the log:
  uint64_t most_bytes;   // of its files together; 0: any number
  uint32_t files;        // of them, at least 1
  uint32_t compact;      // 1: it has numbers of blocks in place of their addresses
  uint32_t owns_ledger;  // 1: the ledger is for the log alone; if the process is killed, the writer
                         // removes it
};
inline constexpr uint64_t kEventHeaderBytes = 80 * 1024;
static_assert(sizeof(EventRingHeader) <= kEventHeaderBytes);
inline constexpr uint64_t kEventRingBytes = 68 * 1024;  // a ring, in whole pages
static_assert(sizeof(EventRing) <= kEventRingBytes);

}  // namespace mtrace::format
