// What the memory of a process was at each of its reports: resident bytes by kind of mapping and by
// file, and what each stack of the program had mapped. Reports tell it with MTRACE_MMAP.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "view/analyze/series.h"

namespace mtrace::analyze {

// Bytes at each report; none: the report does not tell.
using ByteHistory = std::vector<std::optional<uint64_t>>;

// Of the reports that tell.
struct ByteCourse {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t most = 0;
  size_t most_at = 0;  // index of the first report that has `most`

  int64_t growth() const { return static_cast<int64_t>(last - first); }
};
// Nothing if no report tells.
std::optional<ByteCourse> course_of(const ByteHistory& history);

struct RegionRow {
  std::string name;  // a path, or what the memory is
  ByteHistory resident;
  ByteHistory size;  // of the mappings that have resident memory
};

class RegionHistory {
 public:
  // Adds the next report of the process, in order of report numbers. Throws std::runtime_error when
  // a sum does not fit 64 bits.
  void add(const profile::Memlog& memlog);

  const std::vector<State>& reports() const { return mapped_.states(); }
  bool tells_regions(size_t report) const { return untold_[report].has_value(); }
  // Resident bytes of the process; what malloc's blocks held.
  const ByteHistory& resident() const { return resident_; }
  ByteHistory live() const;
  const std::vector<RegionRow>& regions() const { return regions_; }
  // What stacks had mapped: its states are the reports, its values the bytes mapped.
  const Series& mapped() const { return mapped_; }

 private:
  RegionRow& row_of(const std::string& name);

  ByteHistory resident_;
  ByteHistory untold_;  // of a region that no report names
  std::vector<RegionRow> regions_;
  absl::flat_hash_map<std::string, size_t> by_name_;  // index in regions_
  Series mapped_{FrameRange{}};
};

}  // namespace mtrace::analyze
