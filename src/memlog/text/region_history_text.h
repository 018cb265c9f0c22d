// The memory of a process over its reports, as text.
#pragma once

#include <string>

#include "analyze/region_history.h"
#include "text/style.h"

namespace mtrace::text {

// Returns tables of first, last, most and growth in KiB: of the process, of each kind of region and
// file, those with most resident memory first, and of each stack that maps. At most style.limit
// rows of each; 0: all.
std::string region_history_text(const analyze::RegionHistory& history, const Style& style);

}  // namespace mtrace::text
