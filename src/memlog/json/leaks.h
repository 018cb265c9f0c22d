// The findings of memlog leaks as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/leaks.h"
#include "analyze/series.h"
#include "json/answer.h"

namespace mtrace::json {

// Returns number, label and time of a state.
Value state_name(const analyze::State& state);
// Returns the states of a process: those, and live bytes.
Value states(const analyze::Series& series);

// Adds to `out` what was found in `series`: "growth" of all growing stacks, "forecast" for `limit`
// bytes if it is given and something grows, and the "stacks", growing ones first, at most `count`
// (0: all) of those that grow and as many of the others. `level`: the rate of false alarms.
void put_findings(Value& out, const analyze::Series& series,
                  const std::vector<analyze::Finding>& findings, double level,
                  std::optional<uint64_t> limit, size_t count);

}  // namespace mtrace::json
