// Writes an event log: all of its events, or with some blocks only counted; one file, or several of
// which each begins with what lives.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/functional/function_ref.h>

#include "model/events/event_log.h"
#include "model/recording/chunk_writer.h"
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

}  // namespace mtrace::events
