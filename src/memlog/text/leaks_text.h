// What a series of reports says of leaks, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/filter.h"
#include "analyze/leaks.h"
#include "analyze/series.h"
#include "text/style.h"

namespace mtrace::text {

struct LeaksContext {
  double level = 0;               // of false alarms
  std::optional<uint64_t> limit;  // bytes
  analyze::LeftOut filtered;
};

// The stacks that grow, what that comes to, and the others in a line each.
std::string leaks_text(const analyze::Series& series, const std::vector<analyze::Finding>& findings,
                       const LeaksContext& context, const Style& style);

}  // namespace mtrace::text
