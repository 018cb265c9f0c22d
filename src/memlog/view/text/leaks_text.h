// Leaks in a series of reports, as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "view/analyze/filter.h"
#include "view/analyze/leaks.h"
#include "view/analyze/series.h"
#include "view/text/style.h"

namespace mtrace::text {

struct LeaksContext {
  double level = 0;                                      // rate of false alarms
  std::optional<uint64_t> limit;                         // bytes
  analyze::GroupBy group_by = analyze::GroupBy::kStack;  // what a row of the series is
  bool explain = false;                                  // with the statistics
  analyze::LeftOut filtered;
};

// Returns the growing stacks, their total growth, and the other stacks in a line each.
std::string leaks_text(const analyze::Series& series, const std::vector<analyze::Finding>& findings,
                       const LeaksContext& context, const Style& style);

}  // namespace mtrace::text
