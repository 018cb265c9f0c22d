// Views as text: histograms of block sizes, source files, trees of stacks, leaks.
#pragma once

#include "model/heap/heap_pages.h"
#include "util/prelude.h"
#include "view/analyze/compare.h"
#include "view/analyze/filter.h"
#include "view/analyze/groups.h"
#include "view/analyze/series.h"
#include "view/analyze/table.h"
#include "view/text/report_text.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns "72,000 bytes in 1,000 blocks of 72 bytes on average".
std::string sizes_line(const heap::SizeHistogram& sizes, const Style& style);

// Returns a line for each class from the least to the largest block: sizes, blocks, bytes, and a
// bar. A bar of n characters stands for 2^(n-1) to 2^n - 1 blocks.
std::string sizes_text(const heap::SizeHistogram& sizes, const Style& style);

// Returns the lines of a function that have numbers, with a few lines around them, under a title:
// flat sum, cumulative sum, number, text. Reads ListedFunction::file; says so when the file cannot
// be read or has fewer lines.
std::string source_text(const analyze::ListedFunction& function, const Style& style);

// Returns the heap's tree, then that of each other kind. Below a node with a single child the
// numbers are the same, so they are not repeated.
std::string trees_text(const analyze::Table& table, const analyze::TreeShape& shape,
                       const Context& context, const Style& style);

struct LeaksContext {
  double level = 0;                                      // rate of false alarms
  std::optional<uint64_t> limit;                         // bytes
  analyze::GroupBy group_by = analyze::GroupBy::kStack;  // what a row of the series is
  bool explain = false;                                  // with the statistics
  analyze::FilteredOut filtered;
};

// Returns the growing stacks, their total growth, and the other stacks in a line each.
std::string leaks_text(const analyze::Series& series, const std::vector<analyze::Finding>& findings,
                       const LeaksContext& context, const Style& style);

}  // namespace mtrace::text
