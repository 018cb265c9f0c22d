// The stacks of a page and what they held at each state, as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "export/report_page.h"

namespace mtrace::exporting {

// Names, places and modules once, frames of these, stacks of frames: page/data.js says how.
nlohmann::ordered_json page_stacks(const PageInput& input);

// `number`, if a browser can count so far. Throws std::runtime_error.
int64_t countable(int64_t number);

}  // namespace mtrace::exporting
