// Reads the events of the chunks of an event log.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/event_log.h"
#include "model/events/columns.h"
#include "model/events/event_log.h"

namespace mtrace::events {

// Stacks and threads by their numbers in the file. A damaged file may make its numbers as large as
// it likes; those that this returns have no gaps.
struct FileNumbers {
  static constexpr uint32_t kMost = UINT32_MAX;

  // 0 if the definition was lost.
  uint32_t stack(uint32_t in_file) const {
    const auto found = stacks.find(in_file);
    return found != stacks.end() ? found->second : 0;
  }
  // A thread may be met before it is defined.
  uint32_t thread(uint32_t in_file) {
    if (in_file == 0) return 0;
    const auto [at, fresh] =
        thread_numbers.try_emplace(in_file, static_cast<uint32_t>(threads.size()));
    if (fresh) threads.emplace_back();
    return at->second;
  }

  absl::flat_hash_map<uint32_t, uint32_t> stacks;
  absl::flat_hash_map<uint32_t, uint32_t> thread_numbers;
  std::vector<EventThread> threads = {EventThread()};
};

class ChunkReader {
 public:
  explicit ChunkReader(FileNumbers& numbers) : numbers_(numbers) {}

  // The events of a chunk that begins at that time. Throws DamagedChunk; so does the next.
  void begin(ColumnReader& in, format::EventForm form, uint64_t steps);
  // Reads the next event, and its time in steps.
  void next(Event& event, uint64_t& steps);
  // The address of a numbered block, if the log has told it (of blocks that lived at a fork); else
  // 0.
  uint64_t address_of(uint64_t numbered) const {
    const auto found = told_.find(block_number(numbered));
    return found != told_.end() ? found->second : 0;
  }

 private:
  // Events until something happens, from a column.
  struct Until {
    uint64_t left = 0;
    bool any = false;

    void read(ColumnReader& column) {
      any = !column.empty();
      left = any ? column.number() : 0;
    }
    bool is_now() { return any && left == 0; }
    void pass() { left -= left != 0 ? 1 : 0; }
  };

  ColumnReader& column(format::EventColumn which) { return columns_[which]; }
  uint64_t address() { return addresses_.decode(column(format::kSingleAddresses).number()); }
  uint64_t birth();
  void read_entry();
  uint64_t moved(uint8_t order);
  uint64_t forget_moving(uint64_t address);
  uint64_t read_place(uint8_t place, uint64_t requested);
  void read_begin(Event& event, const EventEntry& entry);
  void read_end(Event& event, const EventEntry& entry);
  void read_single(Event& event, uint64_t& steps);
  void read_told();

  FileNumbers& numbers_;
  bool has_addresses_ = false;  // the form of the chunk; so is the next
  uint64_t steps_of_tick_ = 1;
  ColumnReader columns_[format::kEventColumns];
  std::vector<ColumnReader> symbols_;  // by thread
  std::vector<EventEntry> entries_;
  BlockOrder order_;
  BlockHistory history_;
  Births births_;
  RecentAddresses addresses_;
  uint64_t first_birth_ = 1;
  uint64_t births_of_chunk_ = 0;
  std::vector<std::vector<uint64_t>> moving_;     // addresses, by thread
  absl::flat_hash_map<uint64_t, uint64_t> told_;  // addresses, by the numbers of blocks
  uint64_t tick_ = 0;
  uint64_t steps_ = 0;  // of the next event
  Until next_tick_, next_switch_;
  std::vector<uint32_t> threads_;  // of the log, by their numbers in the chunk
  uint32_t slot_ = 0;              // of the present one
  uint32_t newest_stack_ = 0;
};

}  // namespace mtrace::events
