// What a view is asked to be about: some reports, some stacks, some of their frames.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/frame_range.h"
#include "analyze/row.h"
#include "analyze/suppressions.h"
#include "profile/model.h"

namespace mtrace::analyze {

struct Span {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;

  bool holds(uint64_t number) const { return number >= least && number <= most; }
};

// What was left out.
struct LeftOut {
  size_t stacks = 0;
  int64_t bytes = 0;  // of the heap's, net; saturates

  void add(const std::string& kind, int64_t change);
  void add(const LeftOut& more);
};

struct Filter {
  // Reports.
  std::unique_ptr<re2::RE2> label;
  std::optional<Span> seq;
  // Stacks, as whole as the report has them: one of `include`, if there are any, and none of
  // `exclude`.
  std::vector<StackPattern> include;
  std::vector<StackPattern> exclude;
  // Rows, when all that makes one is added up.
  uint64_t min_bytes = 0;  // of the change, up or down
  bool grew = false;
  bool shrank = false;
  std::optional<Span> lifetime;  // the mean, milliseconds; without one no row passes
  // What is left of the stacks.
  FrameRange frames;

  bool chooses_reports() const { return label != nullptr || seq.has_value(); }
  bool chooses_rows() const { return min_bytes != 0 || grew || shrank || lifetime; }
  // A report with this number and label.
  bool takes(int64_t number, const std::string& text) const;

  // Removes the entries that are not wanted.
  LeftOut apply(profile::Memlog& memlog);
  LeftOut apply(std::vector<Row>& rows) const;

 private:
  bool wants(const profile::Frames& frames, const std::vector<profile::Module>& modules) const;

  absl::flat_hash_map<uint64_t, bool> wanted_;  // by the number of the frames
};

}  // namespace mtrace::analyze
