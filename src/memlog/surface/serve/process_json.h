// What memlog serve says of a process, as JSON.
#pragma once

#include <vector>

#include "model/profile/timeline.h"
#include "surface/serve/heaps.h"
#include "surface/serve/processes.h"
#include "view/json/stack.h"

namespace mtrace::serve {

json::Value process_json(const ProcessTotals& process);

// Adds "functions", the first `limit` rows (0: all), and "left_out" with the sum of the rest.
void put_functions(json::Value& out, const std::vector<FunctionRow>& rows, size_t limit);

// Adds "functions", those whose blocks expired.
void put_expired(json::Value& out, const std::vector<ExpiredRow>& rows);

// Returns the timeline that memlog run records of the process, beside its reports; no samples:
// there is none.
profile::Timeline timeline_of(const Heaps::Opened& process);
json::Value timeline_json(const profile::Timeline& timeline);

}  // namespace mtrace::serve
