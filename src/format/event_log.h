// The event log file, version 4: doc/events-format.md has its grammar.
//
// A file is a sequence of zstd frames, each with checksum and content size. The content of the
// first begins with kEventHeaderMark, that of the others with kEventChunkMark, or, for blocks that
// are only counted, kLeftOutMark. A log that could not be written to its end has EventsEndEarly as
// its last frame, which zstd skips.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/calls.h"

namespace mtrace::format {

inline constexpr char kEventsSuffix[] = ".events";
inline constexpr char kEventHeaderMark[] = "MEH1";
// A chunk of any version begins with this; then comes its digit.
inline constexpr char kEventChunkMark[] = "MEC";
inline constexpr unsigned kEventsVersion = 4;
inline constexpr char kLeftOutMark[] = "MEL2";
inline constexpr size_t kEventMark = 4;                  // bytes
inline constexpr size_t kMostChunkEvents = 1024 * 1024;  // for a reader
// What a writer puts into a chunk before it looks whether that is full; a few more may come.
inline constexpr size_t kChunkEvents = kMostChunkEvents / 8 * 7;
inline constexpr size_t kShortChunkEvents = 128 * 1024;       // of full logs, and with a size limit
inline constexpr size_t kMostChunkFrames = 1024 * 1024;       // of its stacks
inline constexpr size_t kMostEventChunk = 128u << 20;         // bytes of a content, for a reader
inline constexpr uint64_t kEventTimeStep = 100;               // nanoseconds
inline constexpr uint64_t kEventTick = 1'000'000;             // of a compact log
inline constexpr uint32_t kEventsEndEarlyMagic = 0x184d2a5e;  // of a skippable frame (RFC 8878)

// Kinds of events. Those from kAllocation on have a call in their low four bits.
enum class EventCode : uint8_t {
  kReallocBegin = 1,
  kReallocFailed = 2,
  kMap = 3,
  kUnmap = 4,
  kRemap = 5,
  kThreadBegin = 6,
  kThreadEnd = 7,
  kNote = 8,
  kReport = 9,
  kStart = 10,
  kStop = 11,
  kMemory = 12,
  kLost = 13,
  kEnd = 14,
  kFork = 15,
  kAllocation = 0x10,
  kFree = 0x20,
  kUnknownFree = 0x30,
  kRealloc = 0x40,
  kFreeWithStack = 0x50,
  kUnknownFreeWithStack = 0x60,
  kUnmapWithStack = 0x70,
  kInherited = 0x80,  // a block from before the file began
  kAllocatedLeftOut = 0x90,
};

struct EventsEndEarly {
  uint32_t magic = kEventsEndEarlyMagic;
  uint32_t size = sizeof(uint32_t);
  uint32_t error = 0;  // errno of the write
};

// Of the stacks that a chunk defines.
enum StackColumn : uint8_t {
  kStackNumbers,  // signed: how far from the one after the last
  kStackFacts,    // flags, kind, call, guessed
  kStackShared,   // frames that are those of the stack before, the outermost
  kStackOwn,      // other frames
  kStackFrames,   // numbers of frames in the chunk; 0: the next one
  kStackModules,  // of new frames; so is the next, signed: from the last one
  kStackOffsets,
  kStackColumns,
};

// What a chunk tells of its events (doc/events-format.md, "Events"): numbers of blocks and
// milliseconds, or addresses and steps of kEventTimeStep.
enum class EventForm : uint8_t { kCompact = 1, kFull = 2 };

enum EventColumn : uint8_t {
  kTicks,        // events since the last tick, ticks; in a full chunk, of each event ticks alone
  kSwitches,     // events since the last switch, thread
  kFarLow,       // of a distance that does not fit into an entry: the low byte
  kFarHigh,      // and the rest
  kBirths,       // numbers of blocks
  kEntryCodes,   // EventCode and call
  kEntrySizes,   // requested bytes
  kEntryUsable,  // bytes more than usual_usable_size()
  kEntryStacks,  // how many stacks before the next new one
  kEntryOrders,  // which block
  kEntryPlaces,  // EventPlace + 4 * alignment
  kSingleCodes,  // as kEntryCodes, of events that have no entry; so are the next
  kSingleAddresses,
  kSingleSizes,
  kSingleStacks,
  kSingleMore,
  kCompactColumns,
  kAddresses = kCompactColumns,  // of blocks, only in a full chunk
  kEventColumns,
};

// Which block an entry frees or moves. Below: a distance (doc/events-format.md), or, of a realloc,
// how many of its thread have begun later.
enum EventOrder : uint8_t {
  kOrderFar = 32,      // a distance of so much and kFarLow, kFarHigh
  kOrderBirth = 33,    // a number, in kBirths
  kOrderAddress = 34,  // not a block of this log: its address
};
enum EventPlace : uint8_t {
  kPlaceNumbered = 0,  // the block gets the next number
  kPlaceTold = 1,      // and its address is told, in kAddresses, or in kSingleAddresses
  kPlaceTaken = 2,     // it gets the number of a block whose free was lost, in kBirths
};

// The calls in codes are the first ones of format/calls.h: those that are counted.
inline constexpr unsigned kEventCalls = kAlignedNew;

// Usable size of glibc's block for a requested size. Usable sizes are written as the difference
// from it.
constexpr uint64_t usual_usable_size(uint64_t requested) {
  const uint64_t rounded = (requested + 8 + 15) & ~uint64_t{15};
  return rounded < 32 ? 24 : rounded - 8;
}

inline constexpr char kEventsProgram[] = "program";
inline constexpr char kEventsCommand[] = "command";
inline constexpr char kEventsPid[] = "pid";
inline constexpr char kEventsParent[] = "parent";
inline constexpr char kEventsParentLog[] = "parent-log";
inline constexpr char kEventsParentTime[] =
    "parent-time";  // nanoseconds since 1970, as `started` and `process-started`
inline constexpr char kEventsParentFork[] = "parent-fork";  // the fork's number in the parent's log
inline constexpr char kEventsParentEvents[] = "parent-events";  // "TID:EVENTS TID:EVENTS ..."
inline constexpr char kEventsStarted[] = "started";
inline constexpr char kEventsProcessStarted[] = "process-started";
inline constexpr char kEventsLibrary[] = "library";
inline constexpr char kEventsHost[] = "host";
inline constexpr char kEventsBootId[] = "boot-id";
inline constexpr char kEventsProcessor[] = "arch";    // absent: x86_64
inline constexpr char kEventsLeftOut[] = "left-out";  // blocks that are only counted, as a text
// What was before this file of the log, in numbers: when it began (nanoseconds since 1970), bytes
// and blocks at the peak and its time, reports, events that were lost, frees of unknown blocks,
// resident bytes, and calls by function, from index 0.
inline constexpr char kEventsBefore[] = "before";
inline constexpr char kEventsForm[] = "form";  // kEventsCompact; absent: full
inline constexpr char kEventsCompact[] = "compact";
inline constexpr char kEventsClock[] = "clock";  // tsc or monotonic

}  // namespace mtrace::format
