// The layout of a ledger file (MTRACE_LEDGER): a header and the tables of a process as they are in
// its memory, for readers in other processes. The library maps the file shared and works in it.
// Nothing is copied or written out, so the file is always up to date.
//
// The tables hold addresses of that process; `extents` map them to file offsets. A reader must
// validate every address, index and length before using it. src/libmtrace/ledger/layout.cc checks
// these structs against the tables' own.
//
// The library writes each word atomically. To compute what is live, a reader must read the freed
// totals first and the allocated totals afterwards, as the library does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/cost.h"
#include "format/memlog.h"
#include "format/python.h"

namespace mtrace::format {

inline constexpr uint64_t kLedgerMagic = 0x315245474445'4c4du;  // "MLEDGER1"
inline constexpr uint32_t kLedgerVersion = 11;                  // of everything in this file
inline constexpr char kLedgerSuffix[] = ".ledger";
inline constexpr char kLedgerPlace[] = "/dev/shm";  // where nobody has chosen a place: in memory

// `size` bytes at `address` of the process are at `offset` of the file.
struct LedgerExtent {
  uint64_t address;
  uint64_t offset;
  uint64_t size;
};
inline constexpr uint32_t kMostLedgerExtents = 4096;

enum class LedgerState : uint32_t {
  kRunning = 0,
  kEnded = 1,       // the process ended normally
  kReplaced = 2,    // the process became another program
  kDetached = 3,    // by memlog detach; the content is from before
  kUnreported = 4,  // ended normally, but its report could not be written: the data is here
};

// States of a wait for memlog to search for lost blocks (MTRACE_HOLD_EXIT), and who sets them.
enum class ExitHold : uint32_t {
  kNone = 0,
  kWaits = 1,   // the library: a thread waits
  kTaken = 2,   // memlog: it examines the process
  kOver = 3,    // memlog when it is done, or the library when nobody came: the process goes on
  kWanted = 4,  // memlog: the library must wait when it comes to this point
};

inline constexpr unsigned kLedgerKinds = 30;
inline constexpr unsigned kLedgerKindName = 32;

// Addresses of the tables; all in one extent.
struct LedgerRoots {
  uint64_t arena;          // array: the address of each chunk of kArenaChunk bytes
  uint64_t stacks;         // array: the address of each chunk of kStacksChunk stack indexes
                           // (uint32_t)
  uint64_t stack_count;    // uint32_t: ordinals run from 1 to this
  uint64_t reported;       // array: the address of each chunk of kReportedChunk LedgerCounters
  uint64_t reported_peak;  // uint64_t
  uint64_t levels;         // LedgerLevel[kLedgerLevels]
  uint64_t highest_level;  // uint32_t
  uint64_t large_sizes;    // array: the address of each chunk of kLargeChunk sizes (uint64_t)
  uint64_t threads;        // LedgerThread[kLedgerThreads]
  uint64_t threads_used;   // uint32_t: slots 1 to this have been used; slot 0 always has
  uint64_t threads_asked;  // uint32_t: reports requested through the ledger, see LedgerThread::high
  uint64_t threads_several;  // uint32_t: not 0 after a second thread has started
  uint64_t peak;             // uint64_t: bytes; the mark of the sets that were touched since
  uint64_t peak_when;        // uint64_t: ticks
  uint64_t lost_stacks;      // uint64_t; so are the next three
  uint64_t lost_frames;
  uint64_t lost_blocks;
  uint64_t lost_inflight;
  uint64_t inherited;  // two uint64_t: bytes and blocks
};

// Without a file, the header is in the library's data (format/status.h).
struct LedgerHeader {
  uint64_t magic;  // written last
  uint32_t version;
  LedgerState state;
  uint64_t size;     // bytes in use in the file
  uint64_t missing;  // bytes of tables that did not fit into the file: it is incomplete
  int32_t missing_error;
  uint32_t extents_used;       // written after the extent
  uint64_t first_module;       // address of a LedgerModule
  uint64_t first_python_code;  // address of a LedgerPythonCode; 0: none
  uint64_t command;            // address of the command line, as memlogs have it; 0: not kept
  uint64_t command_length;     // bytes
  char path[4096];             // where the file was made; empty: no file

  uint32_t pid;  // another process's: a fork's child that has done nothing yet. Written after the
                 // numbers of reports
  uint32_t parent;         // of a fork's child, otherwise 0
  uint64_t started;        // nanoseconds since 1970
  uint64_t tick_zero;      // nanoseconds since 1970 at tick 0
  uint64_t clock_zero;     // CLOCK_MONOTONIC_COARSE at tick 0
  uint64_t sampled;        // MTRACE_SAMPLE, bytes; 0: every block
  uint32_t recording;      // 1: new blocks are recorded
  uint32_t seq;            // of the last numbered report; written after `report_path`
  uint32_t named_seq;      // reports up to this one have their final form: resolved or given up
  uint32_t reporting;      // number of the report being published; 0: none. While not 0, `reported`
                           // may be from before the report, from after it, or partly from both
  uint32_t failures;       // reports that could not be written
  uint32_t names_offered;  // not 0: whoever requests the next report fills in its names. The
                           // requester writes it; the report sets it to 0
  uint32_t names_left;     // number of the last report whose names are left to the requester
  uint32_t extremes_renewed;  // incremented before and after a report resets the shortest and
                              // longest lifetimes, or restores them: odd meanwhile
  uint32_t label_length;      // of the label for the next report that is requested. The requester
  char label[256];     // writes both, the length last; the report takes the label and sets the
                       // length to 0
  ExitHold exit_hold;  // before any exit handler
  ExitHold late_hold;  // after the exit handlers and destructors, if memlog wants it
  uint32_t machine;    // number of the processor in ELF files
  LedgerRoots roots;
  uint64_t notes;        // address of LedgerNote[kLedgerNotes]
  uint64_t shadow;       // array: the address of each chunk of kShadowPages LedgerShadowPages
  uint64_t lost_frees;   // address of a uint64_t, as in the line `lost` of memlogs
  uint64_t regions;      // address of a LedgerRegionTable, in the process but not in the file
  uint64_t own_ranges;   // address of kLedgerOwnRanges words, one for each range that the library
                         // has mapped for itself, in the process but not in the file
  int64_t thread_state;  // the library's state in each thread: bytes from the thread pointer on
  uint64_t thread_state_size;  // bytes
  uint64_t late;               // 1: the library was loaded by memlog attach
  uint64_t was_off;            // 1: recording was off for a time
  uint64_t lost_modules;       // as in the line `lost`; so are the next four
  uint64_t lost_notes;
  uint64_t lost_resources;
  uint64_t lost_regions;
  uint64_t lost_python;
  OwnCost cost;
  PythonCoverage python;  // zeros: Python functions are in the stacks, or there are none
  uint32_t kinds_used;    // written after the name
  char kinds[kLedgerKinds][kLedgerKindName];  // name of kind n + 1; empty: none
  char program[4096];                         // path, as the others ended by a zero
  char name[256];                             // last component of the path that was executed
  char directory[4096];                       // where reports go
  char library[4096];                         // the `library` line of memlogs
  char report_path[4096];                     // the last complete report
  char node[72];
  char boot_id[40];
};
// Such a word: the number of the first page, above the number of pages; 0: no range.
inline constexpr uint32_t kLedgerOwnRanges = 2048;
inline constexpr unsigned kLedgerOwnRangeBits = 28;  // of the number of pages
inline constexpr uint64_t kLedgerHeaderBytes = 128 * 1024;
// The file begins with this.
struct LedgerFileHead {
  LedgerHeader header;
  LedgerExtent extents[kMostLedgerExtents];  // the head itself is in none
};
static_assert(sizeof(LedgerFileHead) <= kLedgerHeaderBytes);

// A note of the program that no report contains yet; see report/notes.h.
enum LedgerNoteState : uint32_t { kNoteFree = 0, kNoteWriting = 1, kNoteWhole = 2 };
inline constexpr unsigned kLedgerNotes = 64;
inline constexpr size_t kLedgerNoteText = 255;  // bytes
struct LedgerNote {
  uint32_t state;  // LedgerNoteState
  uint32_t order;  // increases with each note; wraps around
  uint64_t time;   // nanoseconds since 1970
  char text[kLedgerNoteText + 1];
};

// A loaded object with frames in stacks, also after it was unloaded. A list, newest first.
struct LedgerModule {
  uint64_t next;   // address; 0: the last
  uint64_t start;  // the object's addresses are [start, end)
  uint64_t end;
  uint64_t base;  // load bias
  uint32_t generation;
  uint32_t build_id_size;
  uint8_t build_id[32];
  uint32_t born;  // unload epoch; see modules/modules.h
  uint32_t died;  // kLedgerAlive: it is loaded
  uint32_t number;
  uint32_t path_length;
  // The path follows, without a zero byte.
};
inline constexpr uint32_t kLedgerAlive = 0xffffffffu;
static_assert(sizeof(LedgerModule) == 88);

// A code object of Python that frames name (format/python.h). A list, newest first.
struct LedgerPythonCode {
  uint64_t next;      // address; 0: the last
  uint64_t identity;  // PythonIdentity
  uint32_t number;
  uint32_t first_line;
  uint32_t name_bytes;
  uint32_t table_bytes;
  uint32_t file_bytes;
  uint32_t unused;
  // The name, the location table and the name of the source file follow.
};
static_assert(sizeof(LedgerPythonCode) == 40);

// Stacks and sets of counters are in an arena. Their index is the number of their first unit there.
inline constexpr uint64_t kArenaUnit = 64;
inline constexpr uint64_t kArenaChunk = 1u << 20;
inline constexpr uint32_t kArenaChunks = 4096;

inline constexpr uint32_t kStacksChunk = 1u << 14;
inline constexpr uint32_t kReportedChunk = 1u << 12;
inline constexpr uint32_t kLargeChunk = 1u << 16;

// One set of counters of a stack. It begins at a cache line, so that all that nearly every
// operation touches is in one. The mark includes the owner, because both are compared each time.
struct LedgerCounterSet {
  uint64_t allocated_bytes;
  uint64_t allocated_blocks;
  uint64_t freed_bytes;
  uint64_t freed_blocks;
  uint64_t slack;     // usable less requested bytes of live blocks; one set alone may be negative
  uint64_t lifetime;  // ticks
  uint64_t mark;      // the lowest kLedgerMarkBits bits: the height of the peak that `set_aside`
                      // belongs to (ledger/peak.h); above them, the owner
  uint32_t shortest;  // kMostPackedTicks + 1 - the shortest lifetime, packed; 0: none
  uint32_t longest;   // 1 + the longest, packed; 0: none. Both since the previous report

  uint64_t set_aside;  // bytes that the set held before its first change after that peak
  uint64_t temporary;
  uint64_t long_lived;  // freed blocks that were not short-lived: fewer than those that were
};
// In `set_aside` of a stack of a kind: the rest is the form of its mappings (mapping_form.h).
inline constexpr uint64_t kLedgerMappingForm = uint64_t{1} << 62;
inline constexpr unsigned kLedgerMarkBits = 48;
static_assert(sizeof(LedgerCounterSet) == 88);

// Totals of a stack at one moment, or changes between two moments.
struct LedgerCounters {
  uint64_t allocated_bytes;  // requested
  uint64_t allocated_blocks;
  uint64_t freed_bytes;
  uint64_t freed_blocks;
  uint64_t temporary;    // frees by the thread that allocated the block and nothing since
  uint64_t short_lived;  // frees within MTRACE_TEMPORARY_MS
  uint64_t lifetime;     // ticks, sum over all freed blocks

  int64_t live_bytes() const { return static_cast<int64_t>(allocated_bytes - freed_bytes); }
  int64_t live_blocks() const { return static_cast<int64_t>(allocated_blocks - freed_blocks); }
  bool operator==(const LedgerCounters&) const = default;
  LedgerCounters& operator+=(const LedgerCounters& other) {
    allocated_bytes += other.allocated_bytes;
    allocated_blocks += other.allocated_blocks;
    freed_bytes += other.freed_bytes;
    freed_blocks += other.freed_blocks;
    temporary += other.temporary;
    short_lived += other.short_lived;
    lifetime += other.lifetime;
    return *this;
  }
  LedgerCounters operator-(const LedgerCounters& other) const {
    return {allocated_bytes - other.allocated_bytes,
            allocated_blocks - other.allocated_blocks,
            freed_bytes - other.freed_bytes,
            freed_blocks - other.freed_blocks,
            temporary - other.temporary,
            short_lived - other.short_lived,
            lifetime - other.lifetime};
  }
};

// A piece of a stack's frames beyond its own. Equal ones are one.
inline constexpr size_t kLedgerFrameBytes = 6;
inline constexpr unsigned kLedgerTailFrames = 8;
struct LedgerTail {
  char frames[kLedgerTailFrames * kLedgerFrameBytes];  // whole_frame() makes addresses of them
  uint32_t hash;
  uint32_t next;      // index of the links to entries behind it; 0: none
  uint32_t parent;    // index of the next piece, outwards; 0: this is the outermost
  uint32_t children;  // stacks and pieces that have it as their next piece, or a few more
};

// A stack. The counters that nearly every operation touches have a cache line of their own, so that
// a thread that counts does not take away the line that look-ups of other threads read.
struct LedgerStack {
  LedgerCounterSet own;  // of the thread that met the stack first
  uint64_t hash;
  uint32_t next;          // index of the links to stacks behind it; 0: none
  uint32_t ordinal;       // dense number from 1
  uint32_t second_owner;  // slot of the thread that came next; 0: none
  uint32_t second;        // index of that thread's LedgerCounterSet; 0: not made
  uint32_t others;        // index of LedgerOtherSets; 0: no other thread has come
  uint32_t retired;       // unload epoch in which one of its modules went; kLedgerAlive: in use
  uint32_t still_gone;    // last epoch in which its modules had not come back
  uint8_t own_frames;     // frames here; the others are in the tail
  uint8_t kind : 6;       // 0: heap; otherwise the number of a kind of resources
  uint8_t cut : 1;        // there were more frames than depth
  uint8_t call;           // the function that was called (format/calls.h)
  uint8_t guessed;        // index of the first frame that may be wrong; 0: none
  uint32_t tail;          // index of the innermost LedgerTail; 0: none
  uint8_t tails;          // how many there are
  uint8_t reserved[3];
  char frames[];  // addresses of kLedgerFrameBytes, innermost first

  // How many frames it has.
  unsigned depth() const { return own_frames + tails * kLedgerTailFrames; }
  // Whether frame i is the first that may be wrong.
  bool is_guessed(unsigned i) const { return guessed != 0 && guessed == i; }
};
static_assert(sizeof(LedgerStack) == 136 && offsetof(LedgerStack, hash) == 88);
static_assert(sizeof(LedgerTail) == 64);

// The sets of the threads after the second, eight to a piece. The first piece also has the set
// shared by threads without one of their own. A piece has a cache line to itself, seldom written.
inline constexpr unsigned kLedgerOtherSets = 8;
inline constexpr unsigned kLedgerMostOtherSets = 8;  // of one stack
struct LedgerOtherSets {
  uint32_t sets[kLedgerOtherSets];    // indices of LedgerCounterSets, 0: none
  uint16_t owners[kLedgerOtherSets];  // the threads' slots, 0: nobody's
  uint32_t shared;  // index of the set of all further threads; in the first piece only
  uint32_t next;    // index of LedgerOtherSets, 0: none
};
static_assert(sizeof(LedgerOtherSets) == 56);

// See ledger/block_hash.h. `lines` of four slots lie at `slots`.
struct LedgerLevel {
  uint64_t slots;  // address; 0: not allocated
  uint64_t reach;
  uint64_t lines;
  uint64_t number;
};
inline constexpr unsigned kLedgerLevels = 36;
inline constexpr unsigned kSlotsALine = 4;

// A live block.
//   key    address / 8 in 45 bits, above it the low 19 bits of the birth; 0 and 1: no block
//   value  stack index in 26 bits, size in 30, the high 8 of the birth; 0: being changed
// A size of kLargeSize or more is kLargeSize + the index of an entry of `large_sizes`.
struct LedgerSlot {
  uint64_t key;
  uint64_t value;
};
inline constexpr unsigned kSlotAddressBits = 45;
inline constexpr unsigned kSlotStackBits = 26;
inline constexpr unsigned kSlotSizeBits = 30;
inline constexpr uint64_t kLargeSize = uint64_t{1} << (kSlotSizeBits - 1);

// See ledger/heap_shadow.h. A page of the shadow has a word for each 2^kShadowGranuleBits bytes of
// a part of the heap of 2^kShadowPartBits bytes. A word that is not 0 is a live block: stack in 26
// bits, size in 9, birth in 27, and in the highest two bits 3 and 4 of its address.
struct LedgerShadowPage {
  uint64_t owner;  // address of its part, and 1; even: it serves none
  uint64_t chunk;  // address of kShadowChunk pages, at the first of them
};
inline constexpr uint32_t kShadowPages = 1u << 14;
inline constexpr uint32_t kShadowPagesChunks = (1u << 25) / kShadowPages;
inline constexpr uint32_t kShadowChunk = 64;
inline constexpr unsigned kShadowGranuleBits = 5;
inline constexpr unsigned kShadowPartBits = 14;
inline constexpr unsigned kShadowStackBits = 26;
inline constexpr unsigned kShadowSizeBits = 9;
inline constexpr unsigned kShadowPlaceShift = 62;

// The mappings that the program has made (MTRACE_MMAP), in the order of their addresses; see
// ledger/region_table.h. What is read while `changes` is odd, or differs afterwards, may be torn.
struct LedgerRegion {
  uint64_t start;
  uint64_t end;
  uint64_t origin;  // number of the put() that this is left of
  uint32_t stack;   // stack index, as in blocks
  uint32_t mark;    // of the call that is about to end it; 0: none
};
inline constexpr uint32_t kLedgerRegions = 127;  // of a chunk
struct LedgerRegionChunk {
  uint32_t count;
  uint32_t unused[7];
  LedgerRegion regions[kLedgerRegions];
};
inline constexpr uint32_t kLedgerRegionChunks = 4689;
struct LedgerRegionStore {
  uint32_t ever_used;                   // chunks from this number on never were
  uint16_t order[kLedgerRegionChunks];  // all chunks: those in use by address, then the free ones
  LedgerRegionChunk chunks[kLedgerRegionChunks];
};
struct LedgerRegionTable {
  uint32_t changes;
  uint32_t chunks;  // the first of `order` that are in use
  uint64_t store;   // address of a LedgerRegionStore; 0: there is none
};

// A thread; see ledger/thread_slots.h.
inline constexpr unsigned kLedgerCalls = 14;
struct alignas(64) LedgerThread {
  uint32_t tid;   // 0: free
  uint32_t busy;  // operations under way: a signal handler may begin one inside another

  // What the holders of this slot have allocated, less what they have freed. See ledger/peak.h for
  // the rest of this group.
  uint64_t live_bytes;
  uint64_t live_blocks;
  // When live_bytes leaves low..high, the thread publishes it. The least int64_t in `high` makes
  // the thread check `threads_asked` at its next allocation, the greatest in `low` at its next
  // free.
  int64_t high;
  int64_t low;
  uint64_t published;
  uint32_t publications;
  uint32_t most_kept;  // the most that high and low ever differed from `told`

  uint32_t known_sets;  // index of its KnownSets (ledger/stack_table.h); 0: none needed yet

  uint64_t calls[kLedgerCalls];
  uint64_t failed_allocations;
  uint64_t unknown_frees;
};
inline constexpr uint32_t kLedgerThreads = 4097;
static_assert(sizeof(LedgerThread) == 192);

}  // namespace mtrace::format
