// Writes an event log: all of its events, or with some blocks only counted; one file, or several of
// which each begins with what lives.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/functional/function_ref.h>

#include "format/event_ring.h"
#include "format/ledger.h"
#include "model/events/event_log.h"
#include "model/recording/chunk_writer.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::events {

// What the events of a log name by numbers.
class Definitions {
 public:
  virtual ~Definitions() = default;
  // Defines a stack in the chunk; the modules and functions of its frames, too, unless these were
  // defined since forget().
  virtual void define_stack(uint32_t number, ChunkWriter& chunk) = 0;
  virtual void define_thread(uint32_t number, ChunkWriter& chunk) = 0;
  // Another file begins.
  virtual void forget() = 0;
  // See ChunkWriter::AddressOf.
  virtual uint64_t address_of(uint64_t address) const { return address; }
};

// Those of a log that is read.
class LogDefinitions : public Definitions {
 public:
  // `log` must outlive this.
  explicit LogDefinitions(const EventLog& log) : log_(log) {}
  void define_stack(uint32_t number, ChunkWriter& chunk) override;
  void define_thread(uint32_t number, ChunkWriter& chunk) override;
  void forget() override;
  uint64_t address_of(uint64_t address) const override { return log_.address_of(address); }

 private:
  uint64_t define_python(const profile::Frame& frame, ChunkWriter& chunk);

  const EventLog& log_;
  std::vector<bool> modules_;                      // defined
  absl::btree_map<std::string, uint64_t> python_;  // what stands for a function and its line
};

class LogWriter {
 public:
  using Append = std::function<void(std::string content)>;

  // Appends the first frame: `head`, which has its mark, and what the log leaves out, as a text.
  // `append` gets the content of a frame each time. `definitions` must outlive this.
  LogWriter(std::string head, Definitions& definitions, std::string_view left_out, Append append);
  ~LogWriter();

  // Before the first event: begin_file() may be called. Keeps what lives, some 100 bytes a block.
  void keep_state();
  // Ends the file and, after `open_next`, begins another one: with what lives and the sums so far.
  void begin_file(absl::FunctionRef<void()> open_next);
  // Writes an event. Times must not decrease.
  void put(const Event& event);
  // Counts blocks that are not written; lives are in nanoseconds. `temporary`: the free was of what
  // its thread allocated last.
  void count_allocation(uint32_t stack, uint64_t bytes);
  void count_free(uint32_t stack, uint64_t bytes, uint64_t lifetime, bool temporary);
  // Appends what was put and counted since.
  void flush();

 private:
  class State;

  void define_stack(uint32_t number);
  void define_thread(uint32_t number);
  ChunkWriter new_chunk() const;
  void put_live();
  void append_head(const std::string& before = "");
  uint64_t now() const;  // the time of the last event
  void write(const Event& event);
  void add(const LeftOut& more);
  void append_left_out();

  std::string head_;
  EventHeader header_;
  Definitions& definitions_;
  std::string left_out_text_;
  Append append_;
  std::unique_ptr<State> state_;
  ChunkWriter chunk_;
  std::vector<bool> stacks_;  // defined; so are the next
  std::vector<bool> threads_;
  uint64_t steps_ = 0;
  absl::btree_map<uint32_t, LeftOut> left_out_;  // by stack
};

// Leaves blocks out of a log: those that live shorter than a time, and those that nobody wants.

struct CullWish {
  uint64_t lifetime = 0;  // nanoseconds; 0: however short a block lives, it stays
  // Whether to keep the block that such an event allocates; empty: keep all.
  std::function<bool(const Event&)> keeps;
  // Events that wait to be decided. With more, the oldest are written, however long the block
  // lives.
  size_t most_waiting = 512 * 1024;
};

// Of each thread, the block that it allocated last.
class LastAllocations {
 public:
  // Takes the next event. True: it frees what its thread allocated last.
  bool take(const Event& event);

 private:
  std::vector<uint64_t> addresses_;  // by thread; 0: it was freed
};

// A block and what realloc made of it stay together or go together; their life is from the first
// allocation to the free. All of its events go, and are counted by stack.
class Culler {
 public:
  // `out` must outlive this.
  Culler(CullWish wish, LogWriter& out) : wish_(std::move(wish)), out_(out) {}

  // Takes the next event of the log.
  void put(const Event& event);
  // Writes what still waits: the log ends.
  void finish();

 private:
  using Index = uint32_t;  // 0: none

  // An event that waits, in the order of the log.
  struct Waiting {
    Event event;  // without its text
    std::string text;
    Index before = 0;
    Index after = 0;
    Index chain = 0;
    Index next_of_chain = 0;
    bool temporary = false;  // a free of what the thread allocated last
  };
  // A block with its reallocs, while it may still be left out, or once it is.
  struct Chain {
    bool dropped = false;  // its events are not written
    Index first = 0;       // of its events that wait; so is the next
    Index last = 0;
    uint64_t born = 0;      // time of its first allocation
    uint64_t address = 0;   // where it is; during a realloc, where it was
    uint32_t moved_by = 0;  // the thread that moves it, + 1; else 0
    // Of a dropped one, the present block:
    uint32_t stack = 0;
    uint64_t requested = 0;
    uint64_t time = 0;
  };

  void begin(const Event& event);
  void end(const Event& event, Index chain);
  void move(const Event& event, Index chain);
  void arrive(const Event& event, Index chain);
  void hold(const Event& event, Index chain);
  void write(const Event& event, bool temporary);
  void set_block(const Event& event, Chain& chain);
  Index at(uint64_t address) const;
  Index moved(uint32_t thread, uint64_t address) const;
  Index freed(const Event& event) const;
  void leave_out(Index chain, const Event& freed);
  void decide(Index chain);
  void forget(Index chain);
  void write_oldest();
  void unlink(Index waiting);

  CullWish wish_;
  LogWriter& out_;
  std::vector<Waiting> waiting_ = {{}};  // the first links to the oldest and to the youngest
  std::vector<Index> free_waiting_;
  size_t count_ = 0;
  std::vector<Chain> chains_ = {{}};
  std::vector<Index> free_chains_;
  LastAllocations all_;
  LastAllocations written_;  // of the events that the log has
  bool temporary_ = false;   // the present event is a free of what the thread allocated last
  absl::flat_hash_map<uint64_t, Index> blocks_;                       // by address
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Index> moving_;  // by thread and address
};

// The file of an event log, being written: one zstd frame after the other, compressed and written
// by a thread of its own.

// Where the frames of an event log go, if not into a file.
class FrameSink {
 public:
  FrameSink() = default;
  virtual ~FrameSink() = default;
  FrameSink(const FrameSink&) = delete;
  FrameSink& operator=(const FrameSink&) = delete;

  // What the log is called. The part behind the last slash is its name as a file.
  virtual const std::string& path() const = 0;
  // Takes a whole frame, without waiting for a receiver. Returns 0, or the errno of why it takes no
  // more. By one thread at a time.
  virtual int put(std::string_view frame) = 0;
  // Returns whether it holds so much that events should be lost rather than put. From any thread.
  virtual bool is_full() const = 0;
  // No frame follows; `lost` events are not in those. Waits while what it holds is arriving.
  virtual void finish(uint64_t lost) = 0;
};

class LogFile {
 public:
  // Makes a new file: PLACE itself, or NAME-PID.events in the directory PLACE, which ends with a
  // slash. Replaces nothing: a name that is taken gets a number. Throws util::FileError. With a
  // `sink` no file: the frames go there.
  LogFile(const std::string& place, const std::string& name, uint32_t pid,
          std::unique_ptr<FrameSink> sink = nullptr);
  // Writes what is waiting.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  const std::string& path() const { return path_; }
  // Appends a frame with that content. Waits while two are waiting already.
  void append(std::string content);
  // The bytes of the frames so far; after finish().
  uint64_t size() const { return size_; }
  // Makes the next file. False: it cannot; the present one goes on.
  bool make_next();
  // After that and finish(): the file gets the name PATH.old1, what had that name PATH.old2 and so
  // on up to `older`; further ones are replaced. The next file takes its name.
  void begin_next(unsigned older);
  // Waits until all frames are written. Returns the errno of the first that could not be; 0: none.
  // The file then ends with the frame before it and a mark, and later ones are left out. A file
  // without any frame is removed.
  int finish();
  // The same, so far; without waiting.
  int error();
  // Returns whether events should be lost rather than appended: only where a sink is full.
  bool is_full() const { return sink_ != nullptr && sink_->is_full(); }
  // After finish(). Tells a sink how many events the log lacks, and waits while what it holds is
  // arriving.
  void await_arrival(uint64_t lost) {
    if (sink_ != nullptr) sink_->finish(lost);
  }

 private:
  void work();
  void write(const std::string& content, int level);
  int reserve(size_t size) const;
  void give_back();
  void end_early(int error);

  std::unique_ptr<FrameSink> sink_;
  std::string path_;
  util::Descriptor file_;
  util::Descriptor next_;
  uint64_t size_ = 0;  // of the whole frames
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;
  bool any_waiting_ = false;
  bool busy_ = false;
  bool ends_ = false;
  int error_ = 0;
  std::thread thread_;
};

// Returns why the log ends early: the errno of the write that failed; 0: it does not.
int early_end_of(const std::string& path);

// Writes the event log of a process while it runs: what its library started it for.

// Returns where the log of a process goes; nullptr: into a file. Called while the process of the
// caller has one thread, and only this one maps the memory. Throws util::FileError.
using OpenSink = std::function<std::unique_ptr<FrameSink>(const format::EventRingHeader&,
                                                          const format::LedgerHeader&)>;

// Takes the events of the process whose memory (format/event_ring.h) is the file `rings` and whose
// ledger is the file `ledger`, until the process has ended, and writes them. Takes over the
// descriptor of the ledger. Returns 0, or the errno of what was in the way. Throws
// std::runtime_error if the files are no such ones.
int record_events(int rings, int ledger, const OpenSink& open_sink);

}  // namespace mtrace::events
