// Stacks that the library cut before own code, and the depth at which they would be whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/memlog.h"
#include "view/analyze/responsible.h"
#include "view/analyze/row.h"

namespace mtrace::analyze {

// Returns what leads a stack that was cut at `depth` frames before any own code.
std::string cut_text(size_t depth);

// The quantities of rows by the frames that their stacks had.
class CutDepth {
 public:
  // Of the rows of the heap, those above 0 of the order's quantity. They name `modules`.
  void add(const std::vector<Row>& rows, const std::vector<profile::Module>& modules, Order order,
           const Responsible& responsible);

  // Returns "33.1 % is in stacks that were cut before own code: memlog run --depth 48 ...
  // (MTRACE_DEPTH=48) keeps 98 % of that whole"; empty up to 5 %.
  std::string text() const;

 private:
  static constexpr size_t kDeeper = format::kMaxDepth + 1;

  double all_ = 0;
  double cut_ = 0;
  size_t depth_ = 0;                            // the largest at which one was cut
  std::array<double, kDeeper + 1> whole_ = {};  // by frames; 0: not told
};

}  // namespace mtrace::analyze
