// A regular expression for a frame: its function, its source line or its module.
#pragma once

#include <re2/re2.h>

#include "model/profile/model.h"
#include "util/prelude.h"
#include "view/analyze/groups.h"
#include "view/analyze/responsible.h"
#include "view/analyze/row.h"
#include "view/analyze/table.h"

namespace mtrace::analyze {

// A pattern is malformed. The text does not say where it was.
class PatternError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Compiles an expression that may match anywhere in a text. Throws PatternError.
std::unique_ptr<re2::RE2> compile(std::string_view expression);

class FramePattern {
 public:
  // Parses "REGEX" (for function, source or module), "function:REGEX", "source:REGEX" or
  // "module:REGEX". "function::f" is a REGEX. Throws PatternError.
  explicit FramePattern(std::string_view text);

  // Parses the text after "leak:" in a LeakSanitizer suppressions file: a part of a function,
  // source file or module. * matches any text; ^ at the front and $ at the end anchor.
  static FramePattern leak(std::string_view text);

  // Returns whether frame `at` of a stack matches. Tests a function in its full and its shortened
  // form, a source with and without its line, and an inlined frame by the module it is inlined
  // into.
  bool matches(const profile::Frames& frames, size_t at,
               const std::vector<profile::Module>& modules) const;

 private:
  enum class Where { kAny, kFunction, kSource, kModule };
  using Known = absl::flat_hash_map<std::string, bool>;

  FramePattern(Where where, std::string_view expression);
  template <typename Match>
  static bool remember(Known& known, const std::string& text, Match match);

  Where where_;
  std::unique_ptr<re2::RE2> expression_;
  // Cached results: the same texts recur.
  mutable Known functions_;
  mutable Known sources_;
  mutable Known modules_;
};

// Files of patterns: one a line, # comments.

// Calls take(line) for each line of `text`, trimmed, that is neither empty nor a comment. A
// PatternError from `take` becomes a FormatError with `name` and the number of the line.
void each_pattern_line(const std::string& name, std::string_view text,
                       const std::function<void(std::string_view line)>& take);

// Suppressions: stacks that are not to be reported. A text file, one pattern a line:
//
//   leak:PATTERN             as in LeakSanitizer
//   function:REGEX           a frame's function; also source:, module:, and any: for any of them
//   frames:REGEX < REGEX     the innermost frames, in this order
//   # text                   a comment; empty lines are, too
//
// A pattern suppresses a stack when one of its frames matches; frames: when each of them does.
class StackPattern {
 public:
  // Matches any frame.
  explicit StackPattern(FramePattern pattern) { patterns_.push_back(std::move(pattern)); }
  // Parses a line of the file. Throws PatternError.
  explicit StackPattern(std::string_view line);

  bool matches(const profile::Frames& frames, const std::vector<profile::Module>& modules) const;

 private:
  std::vector<FramePattern> patterns_;
  bool in_order_ = false;
};

// Reads the patterns in `text`. Throws util::FormatError with `name` and the line.
std::vector<StackPattern> read_suppressions(const std::string& name, std::string_view text);

// Memory that the C and C++ runtimes keep to the end and never free, in every program.

// The text of a suppressions file.
extern const char kRuntimeKeeps[];

std::vector<StackPattern> runtime_keeps();

// What such stacks are together, where functions are added up or drawn.
inline constexpr char kKeptByRuntimes[] = "kept by runtimes";
bool kept_by_runtimes(const profile::Frames& frames, const std::vector<profile::Module>& modules);

// Selects what a view shows: reports, stacks, and frames of stacks.

struct Span {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;

  bool holds(uint64_t number) const { return number >= least && number <= most; }
};

// Stacks left out of one report or of several, each counted once.
class StacksLeftOut {
 public:
  // `id`: as `stack=`; 0: not known, counts as another stack. `kind`: empty: of the heap.
  void add(uint64_t id, std::string_view kind, int64_t bytes);
  // `sign`: -1: the bytes of `more` count as what was there before.
  void add(const StacksLeftOut& more, int sign = 1);

  size_t stacks() const { return ids_.size() + without_id_; }
  int64_t bytes() const { return bytes_; }  // net, of the heap; saturates

 private:
  absl::flat_hash_set<std::pair<uint64_t, std::string>> ids_;
  size_t without_id_ = 0;
  int64_t bytes_ = 0;
};

struct FilteredOut {
  StacksLeftOut by_filters;
  StacksLeftOut by_runtimes;  // what runtimes keep; not among those above

  void add(const FilteredOut& more, int sign = 1) {
    by_filters.add(more.by_filters, sign);
    by_runtimes.add(more.by_runtimes, sign);
  }
};

struct Filter {
  // Selects reports.
  std::unique_ptr<re2::RE2> label;
  std::optional<Span> seq;
  // Select stacks, by all frames in the report: at least one of `include` matches, if there are
  // any, and none of `exclude`.
  std::vector<StackPattern> include;
  std::vector<StackPattern> exclude;
  std::vector<StackPattern> runtime;  // what runtimes keep: none of them, either
  // Functions that were called, as in `call=`: one of them, if there are any.
  std::vector<std::string> calls;
  // Select rows, once they are summed up.
  uint64_t min_bytes = 0;  // absolute value of the change
  bool grew = false;
  bool shrank = false;
  std::optional<Span> lifetime;  // mean lifetime, milliseconds; a row without one never passes
  // The frames of each stack to keep.
  FrameRange frames;
  // Whose code the frames are. `all_frames`: show the frames without folding.
  ResponsiblePointer responsible = std::make_shared<const Responsible>();
  bool all_frames = false;
  // What to add up.
  GroupBy group_by = GroupBy::kStack;

  // Returns whether the rows are stacks as in the report.
  bool whole_stacks() const { return frames.whole() && group_by == GroupBy::kStack; }
  bool chooses_reports() const { return label != nullptr || seq.has_value(); }
  bool chooses_stacks() const {
    return !(include.empty() && exclude.empty() && runtime.empty() && calls.empty());
  }
  bool chooses_rows() const { return min_bytes != 0 || grew || shrank || lifetime; }
  // Returns whether the filter takes a report with this number and label.
  bool takes(int64_t number, const std::string& text) const;

  // Removes the entries that the filter rejects.
  FilteredOut apply(profile::Memlog& memlog);
  FilteredOut apply(std::vector<Row>& rows) const;

 private:
  enum class Taken : uint8_t { kYes, kNo, kRuntime };
  Taken takes(const profile::Frames& frames, const std::vector<profile::Module>& modules) const;

  absl::flat_hash_map<uint64_t, Taken> known_;  // by the number of the frames
};

}  // namespace mtrace::analyze
