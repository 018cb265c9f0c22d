// Stacks that were cut at the depth, continued by whole ones.
#pragma once

#include "view/analyze/responsible.h"
#include "view/analyze/table.h"

namespace mtrace::analyze {

// The callers of a cut stack are those of the whole stacks that have its two outermost frames at
// the same places, if all of these go on alike; Row::joined tells where they begin. Other rows stay
// as they are. For a table that is to be read by people, with all stacks of the reports.
void join_cut(Table& table);

// Stands before the callers that another stack has lent.
inline constexpr char kJoined[] = "(joined)";

// Returns whether a line of the row's folded stack is the first of them. `joined`: one was.
inline bool is_joint(const Row& row, const FoldedFrame& line, bool& joined) {
  if (joined || row.joined == 0 || line.missing() || line.frame < row.joined) return false;
  return joined = true;
}

}  // namespace mtrace::analyze
