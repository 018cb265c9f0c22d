// Stacks that were cut at the depth, continued by whole ones.
#pragma once

#include "view/analyze/table.h"

namespace mtrace::analyze {

// The callers of a cut stack are those of the whole stacks that have its two outermost frames at
// the same places, if all of these go on alike; Row::joined tells where they begin. Other rows stay
// as they are. For a table that is to be read by people, with all stacks of the reports.
void join_cut(Table& table);

}  // namespace mtrace::analyze
