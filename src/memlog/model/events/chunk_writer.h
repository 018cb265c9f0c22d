// Collects events and what they name, and writes them as a chunk of an event log.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/event_log.h"
#include "model/events/block_addresses.h"
#include "model/events/column.h"

namespace mtrace::events {

// The code of a mapping that begins or ends. `stack` 0: its end has none.
inline format::EventCode mapping_code(bool begins, uint64_t stack) {
  if (begins) return format::EventCode::kMap;
  return stack != 0 ? format::EventCode::kUnmapWithStack : format::EventCode::kUnmap;
}

class ChunkWriter {
 public:
  // Definitions: for the chunk that is being collected.
  void define_module(uint32_t number, std::string_view path, uint32_t generation,
                     std::string_view build_id, uint64_t base);
  // A frame of a Python function: its source file, a module of generation 0, and the offset there.
  // Or an address in code made at run time: no module, and the address.
  static constexpr uint32_t kNoModule = 0xffffffff;
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

  // An event begins; `time` in steps of the format since the start, not before the last one's. The
  // values that its code has follow, in the order of the functions below.
  void begin(format::EventCode code, uint8_t call, uint64_t time, uint32_t thread) {
    if (count_ == 0) first_time_ = last_time_ = time;
    unmap_stacks_ |= code == format::EventCode::kUnmapWithStack;
    const bool switches = thread != last_thread_;
    columns_[format::kCodeColumn].put_byte(static_cast<uint8_t>(code) | call);
    columns_[format::kTimeColumn].put((time - last_time_) << 1 | (switches ? 1 : 0));
    if (switches) switch_to(thread);
    last_time_ = time;
    ++count_;
  }
  void address(uint64_t address) {
    columns_[format::kAddressColumn].put(addresses_[last_thread_].encode(address));
  }
  // Of a block; address() is for all others.
  void allocated(uint64_t address, uint64_t requested) {
    const uint64_t number = blocks_.allocate(address, last_thread_, requested);
    columns_[format::kAllocatedColumn].put(number);
    if (number == BlockHistory::kElsewhere) this->address(address);
  }
  void freed(uint64_t address) {
    const uint64_t number = blocks_.free(address, last_thread_);
    columns_[format::kFreedColumn].put(number);
    if (number == BlockHistory::kNoBlock) this->address(address);
  }
  // The old address of a block that realloc was called for: its free was written as an event.
  void moved_from(uint64_t address) {
    const bool last = blocks_.freed_last(address, last_thread_);
    columns_[format::kFreedColumn].put_byte(last ? 1 : 0);
    if (!last) this->address(address);
  }
  void size(uint64_t requested) { columns_[format::kSizeColumn].put(requested); }
  void usable(uint64_t requested, uint64_t usable) {
    columns_[format::kUsableColumn].put_signed(
        static_cast<int64_t>(usable - format::usual_usable_size(requested)));
  }
  void stack(uint32_t number) { columns_[format::kStackColumn].put(number); }
  void number(uint64_t number) { columns_[format::kMoreColumn].put(number); }
  void text(std::string_view text) { columns_[format::kMoreColumn].put_text(text); }

  size_t count() const { return count_; }
  bool full() const {
    return count_ >= format::kEventChunkEvents || frames_ >= format::kMostChunkFrames / 2 ||
           python_text_.bytes().size() + stack_text_.bytes().size() >= kMostDefinitions;
  }
  bool empty() const { return count_ == 0 && modules_ + pythons_ + stacks_ + threads_ == 0; }
  // Returns the content of the chunk and begins the next one.
  std::string finish();

 private:
  static constexpr size_t kMostDefinitions = 4u << 20;  // bytes

  void put_frames(const std::vector<FrameWord>& frames);
  void switch_to(uint32_t thread);

  uint64_t first_event_ = 0;
  uint64_t first_time_ = 0;
  uint64_t last_time_ = 0;
  size_t count_ = 0;
  bool unmap_stacks_ = false;  // an event of the chunk has the stack of an unmap
  uint32_t last_thread_ = 0;
  std::vector<RecentAddresses> addresses_ = {RecentAddresses()};  // by thread
  BlockNames blocks_;
  std::vector<FrameWord> last_frames_;  // of the stack that was defined last
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, uint64_t> frame_numbers_;  // from 1
  size_t frames_ = 0;                                                           // of the stacks
  size_t modules_ = 0;
  size_t pythons_ = 0;
  size_t stacks_ = 0;
  size_t threads_ = 0;
  Column module_text_;
  Column python_text_;
  Column stack_text_;
  Column thread_text_;
  Column columns_[format::kEventColumns];
};

}  // namespace mtrace::events
