// What each stack of a process held at a series of states.
#pragma once

#include "model/profile/model.h"
#include "util/prelude.h"
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

// Finds the stacks of a process that grow over a series of states.

// Tests whether a series of numbers grows, and how fast, without an assumption on its noise.

// Returns the probability that numbers in random order would rise at least as often as `values` do:
// the trend test of Mann (Econometrica 13, 1945) and Kendall (Rank Correlation Methods, 1948). Ties
// count neither way. Exact up to 30 values; above, by the normal distribution with corrections for
// ties and continuity. 1 for fewer than two values.
double growth_probability(const std::vector<int64_t>& values);

// Returns the least possible growth_probability() for so many values: 1 / count!.
double least_probability(size_t count);

struct Slope {
  double middle = 0;  // per step
  double low = 0;     // ends of an interval that holds the true slope with 95 percent probability
  double high = 0;
};

// Returns the median of the slopes between all pairs of values (Theil, Indagationes Mathematicae
// 12, 1950), with Sen's interval (JASA 63, 1968). Needs at least two values; thins out more than
// 300.
Slope slope(const std::vector<int64_t>& values);

enum class Course {
  kFlat,     // always the same
  kGrows,    // rises more often than chance allows, and still does
  kSteps,    // only rises, but too seldom to tell from chance: a vector that doubles
  kFills,    // rose, then hardly any more: a cache
  kStep,     // changed once
  kSwings,   // up and down
  kReturns,  // the same, and ends as it began
  kShrinks,  // falls more often than chance allows, or only falls
};

// Classifies a series. `level`: the rate of false alarms, that is, of series taken for growing
// although they only swing. "Hardly any more": the slope of the later half is less than a quarter
// of that of the earlier half.
Course course_of(const std::vector<int64_t>& values, double level);

const char* course_name(Course course);

struct Finding {
  size_t row = 0;  // index in Series::table()
  Course course = Course::kFlat;
  int64_t first = 0;  // bytes at the first state
  int64_t last = 0;
  double probability = 1;  // growth_probability()
  Slope slope;             // bytes per state; for growing stacks
};

// When `limit` bytes will be live if the growth continues, in states after the last; 0: now.
struct Forecast {
  double states = 0;
  double earliest = 0;
  double latest = 0;   // at the slow end of the interval; 0: never
  double seconds = 0;  // time of `states`, at the pace of the series
};

// Returns a finding for each heap stack that changed: growing stacks first, the fastest first; then
// the others by course and size of the change. `level`: see course_of().
std::vector<Finding> find_leaks(const Series& series, double level);

// Returns the growth of all growing stacks together, per state. Its interval is the sum of the
// stacks' intervals, so it is rather too wide.
Slope growth_of(const std::vector<Finding>& findings);

// Needs growth above 0.
Forecast forecast(const Series& series, const Slope& growth, int64_t limit);

}  // namespace mtrace::analyze
