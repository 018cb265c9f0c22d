// What a process held over time, for the formats that show it.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/profile/model.h"
#include "model/profile/timeline.h"
#include "view/analyze/series.h"
#include "view/export/heaptrack.h"
#include "view/export/stacks.h"

namespace mtrace::exporting {

// Massif's output format, for ms_print and massif-visualizer.
class Massif {
 public:
  // Begins with an empty snapshot. `column`: the name of the numbers.
  Massif(const std::string& program, const std::string& column);

  // Adds a snapshot with the tree of all stacks. Snapshots must be in time order. Merges places
  // below 1 percent of the whole.
  void snapshot(uint64_t milliseconds, const Stacks& stacks);
  // Adds a snapshot without a tree. `bytes`: live. Resident memory has no place in the format:
  // ms_print adds up all that a snapshot holds.
  void sample(uint64_t milliseconds, uint64_t bytes);

  // Returns the whole file. Marks the largest snapshot as the peak.
  std::string finish();

 private:
  void head(uint64_t milliseconds, uint64_t bytes);

  std::string text_;
  int number_ = 0;
  uint64_t largest_ = 0;
  size_t peak_at_ = 0;  // position in text_ of the largest snapshot's tree kind
};

class Timeline {
 public:
  enum class Format { kMassif, kHeaptrack };
  using Ids = absl::flat_hash_set<uint64_t>;

  // `chosen`: only these stacks, reduced to `range`.
  Timeline(Format format, analyze::FrameRange range, std::optional<Ids> chosen);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Gives what memlog run sampled between the reports, before the first of them is added. massif
  // shows it, unless rows are chosen: it is of the whole process. So do not call it for reports
  // from which a filter has taken stacks.
  void show(profile::Timeline samples);

  // Adds the next report of the process: a moment, preceded by the peak if it was in between.
  // Throws std::runtime_error when a sum does not fit 64 bits.
  void add(const profile::Memlog& memlog);
  std::string finish();

 private:
  void begin(const profile::Header& header);
  void take_new_stacks();
  void show_samples(uint64_t until);
  void moment(uint64_t milliseconds, std::vector<analyze::Held> held, uint64_t rss);

  Format format_;
  std::optional<Ids> chosen_;
  analyze::Series series_;
  Stacks stacks_;  // by row of the series, with the values of the moment
  Locations locations_;
  std::unique_ptr<Massif> massif_;
  std::unique_ptr<Heaptrack> heaptrack_;
  std::vector<analyze::Held> before_;
  uint64_t last_ = 0;  // last moment, milliseconds
  profile::Timeline samples_;
  size_t shown_ = 0;  // of the samples
};

}  // namespace mtrace::exporting
