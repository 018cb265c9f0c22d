// What every stack holds now, and how that differs from the last report: read from the tables
// while other threads go on, in one pass, so that totals and entries come from the same values.
#pragma once

#include <cstdint>

#include "ledger/ledger.h"

namespace mtrace::report {

struct Entry {
  int64_t bytes;  // since the last report
  int64_t blocks;
  uint64_t live_bytes;
  uint64_t live_blocks;
  uint64_t id;     // format::StackId
  uint32_t stack;  // index in the stack table
};

// Scratch memory from the kernel, given back at the end of life.
class Snapshot {
 public:
  // Reads and sorts: largest growth first, ties by id. False: no memory.
  bool take(const ledger::Ledger& ledger);
  ~Snapshot();
  Snapshot() = default;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Entries whose bytes or blocks changed.
  const Entry* begin() const { return entries_; }
  const Entry* end() const { return entries_ + count_; }

  int64_t delta_bytes() const { return delta_bytes_; }
  int64_t delta_blocks() const { return delta_blocks_; }
  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t live_blocks() const { return live_blocks_; }

  // Makes this snapshot the base of the next one. take() has seen to the memory.
  void remember(ledger::Ledger& ledger) const;

 private:
  Entry* entries_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t count_ = 0;
  int64_t delta_bytes_ = 0;
  int64_t delta_blocks_ = 0;
  uint64_t live_bytes_ = 0;
  uint64_t live_blocks_ = 0;
};

}  // namespace mtrace::report
