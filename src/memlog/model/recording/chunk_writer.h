// Collects events and what they name, and writes them as a chunk of an event log.
#pragma once

#include "format/event_log.h"
#include "model/events/chunk_reader.h"
#include "model/events/event_log.h"
#include "util/prelude.h"

namespace mtrace::events {

class ChunkWriter {
 public:
  // Returns the address of a block that has a number (is_numbered()); 0: not known.
  using AddressOf = std::function<uint64_t(uint64_t)>;

  // `most_events`: a chunk with so many is full; at most format::kChunkEvents.
  explicit ChunkWriter(
      format::EventForm form, size_t most_events = format::kChunkEvents,
      AddressOf address_of = [](uint64_t address) { return address; });
  ~ChunkWriter();
  ChunkWriter(ChunkWriter&&) noexcept;
  ChunkWriter& operator=(ChunkWriter&&) noexcept;

  // Definitions: for the chunk that is being collected.
  void define_module(uint32_t number, std::string_view path, uint32_t generation,
                     std::string_view build_id, uint64_t base);
  // A frame of a Python function: its source file, a module of generation 0, and the offset there.
  struct Python {
    uint32_t file;
    uint64_t offset;
    std::string_view function;
    uint64_t line;  // 0: none
  };
  void define_python(uint64_t frame, const Python& python);
  // A frame: its module + 1, or 0, and its ELF address, or address or Python's frame.
  struct FrameWord {
    uint64_t module;
    uint64_t offset;
    bool operator==(const FrameWord&) const = default;
  };
  // As in EventStack.
  struct Stack {
    std::string_view kind;
    std::string_view call;
    bool cut;
    unsigned guessed;
    const std::vector<FrameWord>& frames;
  };
  void define_stack(uint32_t number, const Stack& stack);
  void define_thread(uint32_t number, uint32_t tid, std::string_view name);

  // Its stack and its thread are defined. `steps` of the format since the start, not before the
  // last one's.
  void put(const Event& event, uint64_t steps);

  size_t count() const { return count_; }
  bool full() const {
    return count_ >= most_events_ || frames_ >= format::kMostChunkFrames / 2 ||
           python_text_.bytes().size() + stack_columns_[format::kStackFrames].bytes().size() +
                   stack_columns_[format::kStackFacts].bytes().size() >=
               kMostDefinitions;
  }
  bool empty() const { return count_ == 0 && modules_ + pythons_ + stacks_ + threads_ == 0; }
  // Returns the content of the chunk and begins the next one.
  std::string finish();

 private:
  class Events;

  static constexpr size_t kMostDefinitions = 4u << 20;  // bytes

  Column& column(format::StackColumn which) { return stack_columns_[which]; }
  void put_frames(const std::vector<FrameWord>& frames);

  size_t most_events_;
  std::unique_ptr<Events> events_;
  uint64_t first_event_ = 0;
  uint64_t first_steps_ = 0;
  size_t count_ = 0;
  std::vector<FrameWord> last_frames_;  // of the stack that was defined last; so is its number
  uint32_t last_stack_ = 0;
  uint64_t last_offset_ = 0;                                                    // that was new
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, uint64_t> frame_numbers_;  // from 1
  size_t frames_ = 0;                                                           // of the stacks
  size_t modules_ = 0;
  size_t pythons_ = 0;
  size_t stacks_ = 0;
  size_t threads_ = 0;
  Column module_text_;
  Column python_text_;
  Column stack_columns_[format::kStackColumns];
  Column thread_text_;
};

}  // namespace mtrace::events
