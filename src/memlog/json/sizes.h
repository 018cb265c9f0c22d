// Histograms of block sizes as JSON.
#pragma once

#include "analyze/block_sizes.h"
#include "json/answer.h"

namespace mtrace::json {

// Adds "bytes", "blocks", "average_bytes", and "sizes": for each class with blocks {"least_bytes",
// "most_bytes", "blocks", "bytes"}.
void put_sizes(Value& out, const analyze::SizeHistogram& sizes);

}  // namespace mtrace::json
