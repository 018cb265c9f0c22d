// A tree of stacks as text.
#pragma once

#include <string>

#include "view/analyze/table.h"
#include "view/analyze/tree.h"
#include "view/text/report_text.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns the heap's tree, then that of each other kind. Below a node with a single child the
// numbers are the same, so they are not repeated.
std::string trees_text(const analyze::Table& table, const analyze::TreeShape& shape,
                       const Context& context, const Style& style);

}  // namespace mtrace::text
