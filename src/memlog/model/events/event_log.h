// Reads the zstd frames of an event log, one after the other, while the file may grow.
#pragma once

#include "format/event_log.h"
#include "format/memlog.h"
#include "model/profile/model.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::events {

// Where the contents of an event log come from, one frame after the other.
class Contents {
 public:
  virtual ~Contents() = default;
  // Stores the content of the next frame. False: there is none now; later there may be.
  virtual bool next(std::string& content) = 0;
  // Of the log, for messages.
  virtual const std::string& path() const = 0;
  // Frames that were left out.
  virtual uint64_t damaged() const { return 0; }
  // The errno with which the log says that it could not be written to its end; 0: it does not.
  virtual int early_end() const { return 0; }
  // The log ends inside a frame.
  virtual bool cut_short() const { return false; }
};

// Those that this process makes itself.
class MadeContents : public Contents {
 public:
  void add(std::string content) { waiting_.push_back(std::move(content)); }
  bool next(std::string& content) override {
    if (waiting_.empty()) return false;
    content = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  const std::string& path() const override { return path_; }

 private:
  std::string path_ = "the event log";
  std::deque<std::string> waiting_;
};

class FrameReader : public Contents {
 public:
  // Opens the file at `path`; "-" is standard input. Throws util::FileError.
  explicit FrameReader(const std::string& path);

  // Stores the content of the next frame. False: the file holds no more whole frames now. Skips
  // damaged ones. Throws util::FileError.
  bool next(std::string& content) override;

  const std::string& path() const override { return path_; }
  uint64_t damaged() const override { return damaged_; }
  bool cut_short() const override { return at_end_ && used_ < buffer_.size(); }
  int early_end() const override { return early_end_; }

 private:
  bool read_more();
  void skip_damage();

  std::string path_;
  util::Descriptor file_;
  std::string buffer_;  // read, from `used_` on not decoded
  size_t used_ = 0;
  bool at_end_ = false;
  uint64_t damaged_ = 0;
  bool in_damage_ = false;  // that was counted: bytes before the next magic number
  int early_end_ = 0;
};

// Says what is missing of a log of which so many frames were left out; empty: nothing.
std::string missing_text(uint64_t damaged, const Contents& contents);

// Reads an event log (doc/events-format.md), in the order of its events.

enum class Kind : uint8_t {
  kUnknown = 0,        // of a later version of the format; next() leaves these out
  kAllocation = 1,     // address, requested, usable, call, stack
  kFree = 2,           // address, call; stack if the log has stacks of frees
  kUnknownFree = 3,    // the same of a block that mtrace does not know
  kReallocBegin = 4,   // address: the block is the thread's until one of the next two
  kRealloc = 5,        // old_address, address, requested, usable, call, stack
  kReallocFailed = 6,  // address: the block is as it was
  kMap = 7,            // address, requested (whole pages), stack
  kUnmap = 8,          // address, requested; stack as of kFree
  kRemap = 9,          // old_address, old_size, address, requested, stack
  kThreadBegin = 10,   // first event of the thread
  kThreadEnd = 11,     // noticed up to a second after the thread's end
  kNote = 12,          // text
  kReport = 13,        // number: of the report; text: its label
  kStart = 14,         // recording of allocations goes on
  kStop = 15,          // recording stops; frees are still events
  kMemory = 16,        // number: resident bytes of the process
  kLost = 17,          // number: events lost since the last kLost, at unknown places before this
  kEnd = 18,           // the last event; number: EndReason
  kLeftOut = 19,       // left_out, stack: blocks whose events the log does not have
  kFork = 20,          // number: of the fork in this process, from 1
  // A block from before the first event of the log, of the parent, or from an older file of the log
  // (EventHeader::before): address, requested, usable, call, stack; number: the time of its
  // allocation.
  kInherited = 21,
  // Before a free of what the log has as the thread's last allocation: the thread has allocated
  // blocks since that the log leaves out.
  kAllocatedLeftOut = 22,
};

// Whether its call is counted, as in `calls:` of memlogs.
constexpr bool is_counted(Kind kind) {
  return kind == Kind::kAllocation || kind == Kind::kFree || kind == Kind::kUnknownFree ||
         kind == Kind::kRealloc;
}

// Compact logs have numbers in place of the addresses of blocks, in the order of allocation. In an
// event these are an address of no process: with this bit, and the number times 8.
inline constexpr uint64_t kNumbered = uint64_t{1} << 62;
constexpr bool is_numbered(uint64_t address) { return (address & kNumbered) != 0; }
constexpr uint64_t numbered_address(uint64_t number) { return kNumbered | number << 3; }
constexpr uint64_t block_number(uint64_t address) { return (address & ~kNumbered) >> 3; }

// "0x55d0", or "#17" of a numbered block.
std::string address_text(uint64_t address);

// kContinued: in the next file of the log.
enum class EndReason : uint8_t { kExit = 0, kKilled = 1, kExec = 2, kDetached = 3, kContinued = 4 };

// Blocks of a stack that are only counted: what --cull and memlog strip left out of a log. Until
// the time of the event, and since the last such event of the stack.
struct LeftOut {
  uint32_t stack = 0;
  uint64_t allocations = 0;
  uint64_t allocated = 0;  // bytes; so is `freed`
  uint64_t frees = 0;
  uint64_t freed = 0;
  uint64_t short_lived = 0;  // of the frees, within EventHeader::short_lived
  uint64_t temporary = 0;    // of the frees, by the thread before it allocated again
  uint64_t lifetime = 0;     // of all freed blocks together, nanoseconds; so are the next two
  uint64_t shortest = UINT64_MAX;
  uint64_t longest = 0;
};

// An event. Members that the kind does not use are 0 and empty.
struct Event {
  Kind kind = Kind::kEnd;
  uint8_t call = 0;     // the hook that counted it: index into format::kCallNames
  uint32_t thread = 0;  // from 1; index into EventLog::threads(). 0: of no thread
  uint32_t stack = 0;   // index into EventLog::stack(); 0: none
  uint64_t time = 0;    // nanoseconds since 1970, in steps of 100; never decreases
  uint64_t address = 0;
  uint64_t old_address = 0;
  uint64_t requested = 0;  // bytes
  uint64_t usable = 0;     // bytes, at least `requested`
  uint64_t old_size = 0;   // bytes
  uint64_t number = 0;
  // Of the block's address, where that is not known: the exponent of two. 0: not asked for.
  uint8_t alignment = 0;
  std::string_view text;              // valid until the next call of next()
  const LeftOut* left_out = nullptr;  // valid as long
};

struct EventStack {
  std::vector<profile::Frame> frames;       // innermost first; named only if Python's
  uint64_t id = format::StackId().value();  // as `stack=` in memlogs
  std::string kind;                         // as in memlogs; empty: heap
  std::string call;  // the function that the program called; empty: not known
  bool cut = false;  // there were more frames
};

struct EventThread {
  uint32_t tid = 0;
  std::string name;
};

// A thread of the parent, and the events of its that the child knew of at the fork.
struct ThreadAtFork {
  uint32_t tid = 0;  // 0: threads without a number, together
  uint64_t events = 0;
};

// What was before a file of a log that has older files (format::kEventsBefore).
struct BeforeFile {
  uint64_t began = 0;  // the file, nanoseconds since 1970; 0: there are no older files
  uint64_t peak_bytes = 0;
  uint64_t peak_blocks = 0;
  uint64_t peak_time = 0;
  uint64_t reports = 0;
  uint64_t lost = 0;
  uint64_t unknown_frees = 0;
  uint64_t resident = 0;                                                     // bytes
  std::vector<uint64_t> calls = std::vector<uint64_t>(format::kEventCalls);  // by function
};

// What the ancestors of a process had done until they forked it or one another.
struct BeforeFork {
  uint64_t freed = 0;  // bytes
  uint64_t frees = 0;
  std::vector<uint64_t> calls = std::vector<uint64_t>(format::kEventCalls);  // by function
};

struct EventHeader {
  std::string program;
  std::string command;  // escaped as in memlogs; empty: not kept
  int64_t pid = 0;
  int64_t parent = 0;        // pid; 0: this process was not made by fork
  std::string parent_log;    // file name of the parent's log; empty: none
  uint64_t parent_time = 0;  // the fork, nanoseconds since 1970
  uint32_t parent_fork = 0;  // its number in the parent's log; 0: the log has no room for it
  std::vector<ThreadAtFork> parent_events;
  uint64_t started = 0;  // of the log, nanoseconds since 1970
  // Of the process, as reports have it, nanoseconds since 1970; 0: not known.
  uint64_t process_started = 0;
  BeforeFile before;
  bool compact = false;  // blocks have numbers and times are whole milliseconds
  std::string left_out;  // which blocks are only counted; empty: none
  // Of a freed block that counts as short-lived, the longest life: MTRACE_TEMPORARY_MS,
  // nanoseconds.
  uint64_t short_lived = 100'000'000;
  std::string library;  // as in memlogs; so are the next two
  std::string host;
  std::string boot_id;
  std::string processor = format::processor_name(0);
};

class EventLog {
 public:
  static constexpr size_t kDecodedAhead = 32;  // events of a chunk

  // Opens the log at `path` and reads its header. Throws util::FileError, and
  // util::FormatError if this is no event log. If its process was forked, the blocks that it
  // inherited come first, from the log of its parent in the same directory. `generation`: how many
  // descendants of the process ask for their blocks.
  explicit EventLog(const std::string& path, unsigned generation = 0);
  // The same, without what it inherited. Throws FormatError.
  explicit EventLog(std::unique_ptr<Contents> contents);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // After the first event: why blocks that the process inherited are not known, or not all. Empty:
  // they are, or there were none.
  const std::string& missing_inheritance() const;
  // After the first event. All 0: nothing, or missing_inheritance() says why it is not known.
  const BeforeFork& before_fork() const;

  // Stores the next event. False: the end of what the file holds now; when the file grows, a later
  // call returns more. Skips damaged chunks and counts them.
  bool next(Event& event);
  // The event that next() returns after `calls` more calls, less than kDecodedAhead; null: it is
  // not decoded yet, or there is none. Valid until next().
  const Event* coming(size_t calls) const;
  // Goes behind the next chunk, and reads only what it defines: stacks and modules. False: as
  // next().
  bool skip_chunk();

  const std::string& path() const;
  const EventHeader& header() const;
  // The content of the first frame, which has the header.
  std::string_view head() const;
  // The address of a block that has a number, if the log has told it; 0: it has not.
  uint64_t address_of(uint64_t numbered) const;
  // What next() has met so far. Stacks and threads are numbered from 1, without gaps.
  const EventStack& stack(uint32_t number) const;
  // Returns the function that the program called to allocate at `stack`, if `hook` counted it: new,
  // although that reached malloc.
  const char* call(uint32_t stack, uint8_t hook) const;
  uint32_t stack_count() const;  // the highest number met
  const std::vector<profile::Module>& modules() const;
  const EventThread& thread(uint32_t number) const;
  uint32_t thread_count() const;

  uint64_t damaged_chunks() const;
  // Returns what could not be read, or never was written, so far; empty: nothing.
  std::string missing() const;
  bool cut_short() const;  // the file ends inside a chunk: its writer was killed, or still writes

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads the content of the first frame behind its mark. Keys that are not known say nothing. Throws
// DamagedChunk.
EventHeader read_header(std::string_view content);
// The value of format::kEventsBefore.
std::string before_text(const BeforeFile& before);

// Reads a time as people give it, UTC: "2026-11-22T12:04:31.1234567Z" with up to 9 digits, or only
// its part from the hour on ("12:04:31.25", which means the first such moment after an hour before
// `started`). Nanoseconds since 1970.
std::optional<uint64_t> read_time(std::string_view text, uint64_t started);

}  // namespace mtrace::events
