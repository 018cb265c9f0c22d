// What memlog top lists: functions with the stacks that they are responsible for, or stacks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/ledger/watch.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"
#include "view/text/top_text.h"

namespace mtrace::text {

struct TopItem {
  ledger::WatchRow sum;  // of all stacks; its stack is the largest
  size_t group = 0;      // number of the group, from 1; 0: a stack by itself
  size_t stacks = 1;
  bool inside = false;  // a stack of the group above it
};

// Returns the items of `rows` in the view's order: groups, and below the one that is open its
// stacks. `names` must know all of `rows`. The items add up to the rows.
std::vector<TopItem> top_items(const std::vector<ledger::WatchRow>& rows, const StackNames& names,
                               const TopView& view);

// Returns the line of an item: on a terminal (`style.columns`) the function first, elsewhere the
// numbers.
std::string top_line(const TopItem& item, const StackNames& names, const Style& style);

// Returns the column titles above these lines.
std::string top_titles(const TopView& view, const Style& style);

}  // namespace mtrace::text
