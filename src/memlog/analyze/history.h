// What the stacks of one process held at each of its reports.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/frame_range.h"
#include "analyze/table.h"
#include "profile/model.h"

namespace mtrace::analyze {

// Bytes and blocks at a moment; what was done is since the start.
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

  // The next report of the process, in the order of their numbers. Throws std::runtime_error when a
  // sum does not fit 64 bits.
  void add(const profile::Memlog& memlog);

  // The stacks as rows without numbers but the id; none is ever moved or removed.
  const Table& stacks() const { return groups_; }
  // By index in stacks(); other kinds than heap hold nothing.
  const std::vector<Held>& held() const { return held_; }
  // The process was at a new peak between the last report and the one before.
  bool peak_moved() const { return peak_moved_; }

 private:
  size_t group_of(const profile::Memlog& memlog, const profile::Entry& entry);
  void take(Held& held, const profile::Entry& entry, int64_t& live);

  FrameRange range_;
  Table whole_;                // stacks as reports have them
  Table groups_;               // as `range_` leaves them
  std::vector<size_t> group_;  // by index in whole_
  std::vector<int64_t> live_;  // bytes, likewise
  std::vector<Held> held_;
  uint64_t peak_ = 0;  // bytes
  bool peak_moved_ = false;
};

}  // namespace mtrace::analyze
