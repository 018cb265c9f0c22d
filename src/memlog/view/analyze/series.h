// What each stack of a process held at a series of states.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/profile/model.h"
#include "view/analyze/groups.h"
#include "view/analyze/table.h"

namespace mtrace::analyze {

struct State {
  int64_t seq = 0;
  std::string label;
  std::string taken;
  int64_t live = 0;  // bytes of the process
};

// What the stacks of a row allocated and freed, as the reports that are states tell.
struct Turnover {
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t temporary = 0;
  uint64_t timed_frees = 0;     // frees whose blocks' lifetimes are known
  unsigned __int128 lived = 0;  // milliseconds, of all those blocks

  uint64_t lifetime() const {  // the mean
    return timed_frees == 0 ? 0 : static_cast<uint64_t>(lived / timed_frees);
  }
  bool operator==(const Turnover&) const = default;
};

// Throws std::runtime_error when a sum does not fit 64 bits.
void add_to(Turnover& sum, const Turnover& more);

class Series {
 public:
  explicit Series(FrameRange range) : range_(range) {}
  // One row for each group of stacks, instead of each stack. kStack: as above.
  Series(FrameRange range, GroupBy by, ResponsiblePointer responsible)
      : range_(range), by_(by), named_(by, std::move(responsible)) {}

  // Adds the next report of the process, in order of report numbers. `state`: the report is one of
  // the states. A stack that it does not list holds what it held before. Throws std::runtime_error
  // when a sum does not fit 64 bits.
  void add(const profile::Memlog& memlog, bool state);

  const std::vector<State>& states() const { return states_; }
  // The stacks: rows with an id and no numbers; or the groups. Their values: bytes at each state.
  const Table& table() const { return groups_; }
  // Stacks with all frames, whatever the rows are.
  size_t stack_count() const { return stacks_.rows().size(); }
  std::vector<int64_t> values(size_t row) const;
  // Returns the bytes that a stack held before the first report added.
  int64_t before(size_t row) const { return values_[row].before; }
  // Returns the blocks at each state, counted from the first report added: reports do not tell how
  // many there were before.
  std::vector<int64_t> blocks(size_t row) const;
  // Returns the bytes that a stack held at the last peak of the process before the last state.
  int64_t peak(size_t row) const { return values_[row].shown_peak; }
  const Turnover& turnover(size_t row) const { return values_[row].turnover; }

 private:
  struct Point {
    size_t state;
    int64_t value;
    int64_t blocks;
  };
  struct Group {
    int64_t before = 0;  // bytes that its stacks held before the first report that lists them
    int64_t value = 0;   // bytes since
    int64_t blocks = 0;
    int64_t peak = 0;
    int64_t shown_peak = 0;  // as of the last state
    Turnover turnover;
    std::vector<Point> points;
  };
  struct Member {
    size_t group = 0;
    int64_t live = 0;
    int64_t peak = 0;
  };

  size_t group_of(const profile::Memlog& memlog, const profile::Entry& entry);
  void take_peak(const profile::Header& header);

  std::vector<int64_t> along(const Group& group, int64_t first, int64_t Point::*what) const;

  FrameRange range_;
  GroupBy by_ = GroupBy::kStack;
  Groups named_{GroupBy::kStack, nullptr};
  std::vector<State> states_;
  Table stacks_;  // stacks with all frames
  Table groups_;  // stacks reduced to `range_`, or groups
  // A report has an entry for each function that a stack calls: the index in stacks_, and the text
  // of the call; the index in members_.
  absl::flat_hash_map<std::pair<size_t, const std::string*>, size_t> entries_;
  std::vector<Member> members_;
  std::vector<Group> values_;  // by index in groups_
  uint64_t peak_ = 0;          // bytes, of the process
};

// What the stacks of one process held at each report.

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
  // Bytes. A report has an entry for each function that a stack calls: by index in whole_, and the
  // text of the call.
  absl::flat_hash_map<std::pair<size_t, const std::string*>, int64_t> live_;
  std::vector<Held> held_;
  uint64_t peak_ = 0;  // bytes
  bool peak_moved_ = false;
};

}  // namespace mtrace::analyze
