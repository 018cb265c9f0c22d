// Massif's output, for ms_print and massif-visualizer.
#pragma once

#include <cstdint>
#include <string>

#include "export/stacks.h"

namespace mtrace::exporting {

class Massif {
 public:
  // Begins with an empty snapshot. `column`: what the numbers are.
  Massif(const std::string& program, const std::string& column);

  // A snapshot with the tree of all stacks, later than the one before. Places below a hundredth of
  // the whole are one.
  void snapshot(uint64_t milliseconds, const Stacks& stacks);

  // All of it. The largest snapshot is the peak.
  std::string finish();

 private:
  void head(uint64_t milliseconds, uint64_t bytes);

  std::string text_;
  int number_ = 0;
  uint64_t largest_ = 0;
  size_t peak_at_ = 0;  // in text_, where the kind of the largest one's tree stands
};

}  // namespace mtrace::exporting
