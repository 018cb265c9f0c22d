// The stacks of a page and what they held at each state, as JSON.
#pragma once

#include <cstdint>

#include "util/json.h"
#include "view/export/report_page.h"

namespace mtrace::exporting {

// Returns each name, place and module once, frames as indices of these, stacks as indices of
// frames. Layout: page/data.js.
json::Value page_stacks(const PageInput& input);

// Returns `number` if JavaScript can represent it exactly. Throws std::runtime_error otherwise.
int64_t countable(int64_t number);

}  // namespace mtrace::exporting
