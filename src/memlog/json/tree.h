// Trees of stacks as JSON.
#pragma once

#include "analyze/table.h"
#include "analyze/tree.h"
#include "json/answer.h"

namespace mtrace::json {

// Returns a tree for each kind in `table`: {"kind", "bytes", "blocks", ..., "children": [...]}.
// A node below the root has the keys of a frame; {"cut": true} for what is beyond the depth;
// {"places": N} for N branches below the threshold.
Value trees(const analyze::Table& table, const analyze::TreeShape& shape);

}  // namespace mtrace::json
