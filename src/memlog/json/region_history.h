// The memory of a process over its reports, as JSON.
#pragma once

#include "analyze/region_history.h"
#include "json/answer.h"

namespace mtrace::json {

// Adds "reports", "resident_bytes" and "live_bytes" (a number for each report, null where it does
// not tell), "regions" and "mapped_by_stack" with such lists of their own.
void put_region_history(Value& out, const analyze::RegionHistory& history);

}  // namespace mtrace::json
