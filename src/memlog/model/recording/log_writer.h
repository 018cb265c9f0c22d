// Writes events of one log as another log.
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
#include "model/recording/log_state.h"

namespace mtrace::events {

class LogWriter {
 public:
  using Append = std::function<void(std::string content)>;

  // Appends the header of `from`, and what was left out as a text. `append` gets the content of a
  // frame each time. All must outlive this.
  LogWriter(const EventLog& from, std::string_view left_out, Append append);

  // From now on begin_file() may be called: keeps what lives, some 100 bytes a block.
  void keep_state() { state_ = std::make_unique<LogState>(from_.header().short_lived); }
  // Ends the file and, after `open_next`, begins another one: with what lives and the sums so far.
  void begin_file(absl::FunctionRef<void()> open_next);
  // Writes an event that `from` has met. Times must not decrease.
  void put(const Event& event);
  // Counts blocks that are not written; lives are in nanoseconds. `temporary`: the free was of what
  // its thread allocated last.
  void count_allocation(uint32_t stack, uint64_t bytes);
  void count_free(uint32_t stack, uint64_t bytes, uint64_t lifetime, bool temporary);
  // Appends what was put and counted since.
  void flush();

 private:
  uint64_t define_python(const profile::Frame& frame);
  void define_stack(uint32_t number);
  void define_thread(uint32_t number);
  ChunkWriter new_chunk() const;
  void put_live();
  void append_head(const std::string& before = "");
  uint64_t now() const;  // the time of the last event
  void write(const Event& event);
  void add(const LeftOut& more);
  void append_left_out();

  const EventLog& from_;
  std::string left_out_text_;
  Append append_;
  std::unique_ptr<LogState> state_;
  ChunkWriter chunk_;
  std::vector<bool> modules_;                      // defined; so are stacks and threads
  absl::btree_map<std::string, uint64_t> python_;  // what stands for a function and its line
  std::vector<bool> stacks_;
  std::vector<bool> threads_;
  uint64_t steps_ = 0;
  absl::btree_map<uint32_t, LeftOut> left_out_;  // by stack
};

}  // namespace mtrace::events
