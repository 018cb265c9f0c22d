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

// What the stacks of a row hold at the last state, and what they did by then since the first report
// added.
struct Held {
  int64_t bytes = 0;
  int64_t blocks = 0;
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t frees = 0;
  uint64_t temporary = 0;
  uint64_t timed_frees = 0;     // frees whose blocks' lifetimes are known
  unsigned __int128 lived = 0;  // milliseconds, of all those blocks
  int64_t peak = 0;             // bytes at the last peak of the process

  uint64_t lifetime() const {  // the mean
    return timed_frees == 0 ? 0 : static_cast<uint64_t>(lived / timed_frees);
  }
};

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
  // The stacks: rows with an id and no numbers; or the groups. A row never moves.
  const Table& table() const { return groups_; }
  // Stacks with all frames, whatever the rows are.
  size_t stack_count() const { return stacks_.rows().size(); }
  // Returns the bytes at each state.
  std::vector<int64_t> values(size_t row) const;
  // Returns the bytes that a stack held before the first report added.
  int64_t before(size_t row) const { return values_[row].before; }
  // Returns the blocks at each state, counted from the first report added: reports do not tell how
  // many there were before.
  std::vector<int64_t> blocks(size_t row) const;
  const Held& held(size_t row) const { return values_[row].shown; }
  // Whether the process reached a new peak between the last two reports added.
  bool peak_moved() const { return peak_moved_; }

 private:
  struct Point {
    size_t state = 0;
    int64_t value = 0;  // bytes
    int64_t blocks = 0;
  };
  struct Group {
    int64_t before = 0;  // bytes that its stacks held before the first report that lists them
    Held now;            // its bytes: since then
    Held shown;          // as of the last state, with all bytes
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
  bool peak_moved_ = false;
};

}  // namespace mtrace::analyze
