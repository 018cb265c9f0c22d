// Massif's output format, for ms_print and massif-visualizer.
#pragma once

#include <cstdint>
#include <string>

#include "view/export/stacks.h"

namespace mtrace::exporting {

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

}  // namespace mtrace::exporting
