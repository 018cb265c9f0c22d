// What each stack held at a series of states of one process.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/frame_range.h"
#include "analyze/table.h"
#include "profile/model.h"

namespace mtrace::analyze {

struct State {
  int64_t seq = 0;
  std::string label;
  std::string taken;
  int64_t live = 0;  // bytes of the process
};

class Series {
 public:
  explicit Series(FrameRange range) : range_(range) {}

  // The next report of the process, in the order of their numbers. `state`: it is one of those
  // that are looked at; a stack that it does not list holds what it held before. Throws
  // std::runtime_error when a sum does not fit 64 bits.
  void add(const profile::Memlog& memlog, bool state);

  const std::vector<State>& states() const { return states_; }
  // Stacks: rows without numbers, but for the id. Values: bytes at each state.
  const Table& table() const { return groups_; }
  std::vector<int64_t> values(size_t row) const;
  // What it held before the first report that was added: bytes.
  int64_t before(size_t row) const { return values_[row].before; }
  // Blocks at each state, of those made since then; reports do not tell how many there were.
  std::vector<int64_t> blocks(size_t row) const;

 private:
  struct Point {
    size_t state;
    int64_t value;
    int64_t blocks;
  };
  struct Group {
    int64_t before = 0;  // what its stacks held before the first report that lists them
    int64_t value = 0;   // besides
    int64_t blocks = 0;
    std::vector<Point> points;
  };
  struct Member {
    size_t group = 0;
    int64_t live = 0;
  };

  std::vector<int64_t> along(const Group& group, int64_t first, int64_t Point::*what) const;

  FrameRange range_;
  std::vector<State> states_;
  Table stacks_;                 // whole
  Table groups_;                 // as `range_` leaves them
  std::vector<Member> members_;  // by index in stacks_
  std::vector<Group> values_;    // by index in groups_
};

}  // namespace mtrace::analyze
