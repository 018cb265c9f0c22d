// Writes an event log: all of its events, or with some blocks only counted; one file, or several of
// which each begins with what lives.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/functional/function_ref.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/event_log.h"
#include "model/recording/chunk_writer.h"

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

}  // namespace mtrace::events
