// Selects what a view shows: reports, stacks, and frames of stacks.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "view/analyze/groups.h"
#include "view/analyze/responsible.h"
#include "view/analyze/row.h"
#include "view/analyze/suppressions.h"
#include "view/analyze/table.h"

namespace mtrace::analyze {

struct Span {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;

  bool holds(uint64_t number) const { return number >= least && number <= most; }
};

// The rows or entries left out.
struct LeftOut {
  size_t stacks = 0;
  int64_t bytes = 0;          // net, of the heap; saturates
  size_t runtime_stacks = 0;  // what runtimes keep; not among those above
  int64_t runtime_bytes = 0;

  void add(const std::string& kind, int64_t change);
  void add(const LeftOut& more);
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
  LeftOut apply(profile::Memlog& memlog);
  LeftOut apply(std::vector<Row>& rows) const;

 private:
  enum class Taken : uint8_t { kYes, kNo, kRuntime };
  Taken takes(const profile::Frames& frames, const std::vector<profile::Module>& modules) const;

  absl::flat_hash_map<uint64_t, Taken> known_;  // by the number of the frames
};

}  // namespace mtrace::analyze
