// What the stacks of one process held at each report.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/frame_range.h"
#include "analyze/table.h"
#include "profile/model.h"

namespace mtrace::analyze {

// Live bytes and blocks at a moment, and totals since the start.
struct Held {
  int64_t bytes = 0;
  int64_t blocks = 0;
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t frees = 0;
  uint64_t temporary = 0;
  uint64_t peak = 0;  // bytes at the last peak of the process
};

class History {
 public:
  explicit History(FrameRange range) : range_(range) {}

  // Adds the next report of the process, in order of report numbers. Throws std::runtime_error when
  // a sum does not fit 64 bits.
  void add(const profile::Memlog& memlog);

  // The stacks: rows with an id and no numbers. A stack never moves and is never removed.
  const Table& stacks() const { return groups_; }
  // By index in stacks(). Entries of other kinds than heap hold nothing.
  const std::vector<Held>& held() const { return held_; }
  // Whether the process reached a new peak between the last two reports.
  bool peak_moved() const { return peak_moved_; }

 private:
  size_t group_of(const profile::Memlog& memlog, const profile::Entry& entry);
  void take(Held& held, const profile::Entry& entry, int64_t& live);

  FrameRange range_;
  Table whole_;                // stacks as in the reports
  Table groups_;               // stacks reduced to `range_`
  std::vector<size_t> group_;  // by index in whole_
  std::vector<int64_t> live_;  // bytes, by index in whole_
  std::vector<Held> held_;
  uint64_t peak_ = 0;  // bytes
  bool peak_moved_ = false;
};

}  // namespace mtrace::analyze
