// The verdicts of memlog check as JSON.
#pragma once

#include <cstddef>
#include <vector>

#include "analyze/verdict.h"
#include "json/answer.h"

namespace mtrace::json {

// Returns {"what", "within_limit", "bytes", "limit_bytes", "stack_count", "stacks"} for each
// verdict, with at most `count` stacks (0: all).
Value verdicts(const std::vector<analyze::Verdict>& verdicts, size_t count);

}  // namespace mtrace::json
