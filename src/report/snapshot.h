// What every stack holds now, and how that differs from the last report: read from the tables
// while other threads go on, in one pass, so that totals and entries come from the same values.
#pragma once

#include <cstdint>

#include "ledger/ledger.h"

namespace mtrace::report {

struct Entry {
  ledger::Counters now;
  ledger::Counters change;  // since the last report
  uint64_t id;              // format::StackId
  uint32_t stack;           // index in the stack table
  bool listed;              // otherwise only remembered, for the next report's differences

  int64_t bytes() const { return static_cast<int64_t>(live_bytes(change)); }
  int64_t blocks() const { return static_cast<int64_t>(live_blocks(change)); }
};

// Which stacks a report lists.
enum class Listed : uint8_t {
  kNet,     // whose live bytes or blocks changed since the last report
  kActive,  // that allocated or freed since
  kAll,     // that ever did
};

// Scratch memory from the kernel, given back at the end of life.
class Snapshot {
 public:
  // Reads and sorts: largest growth first, ties by id. False: no memory.
  bool take(ledger::Ledger& ledger, Listed listed);
  ~Snapshot();
  Snapshot() = default;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // The listed entries.
  const Entry* begin() const { return entries_; }
  const Entry* end() const { return entries_ + listed_; }

  // Sums over all stacks, listed or not: since the last report, and since the start.
  const ledger::Counters& change() const { return change_; }
  const ledger::Counters& total() const { return total_; }

  // Makes this snapshot the base of the next one. take() has seen to the memory.
  void remember(ledger::Ledger& ledger) const;

 private:
  Entry* entries_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t kept_ = 0;  // entries: first those that are listed
  uint32_t listed_ = 0;
  ledger::Counters change_ = {};
  ledger::Counters total_ = {};
};

}  // namespace mtrace::report
