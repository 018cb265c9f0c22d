// The lines of memlog top.
#pragma once

#include <string>
#include <vector>

#include "live/watch.h"
#include "text/stack_names.h"
#include "text/style.h"

namespace mtrace::text {

struct TopView {
  live::WatchOrder order = live::WatchOrder::kLive;
  size_t chosen = 0;      // row
  size_t first = 0;       // index of the topmost row
  uint32_t expanded = 0;  // ordinal of the stack whose frames are shown; 0: none
  std::string message;    // shown instead of the keys
  bool keys = false;      // show a line with the keys
};

// Returns two lines with the process and the totals, and the column titles.
std::vector<std::string> top_head(const live::LedgerFile& file, const live::Watch& watch,
                                  const TopView& view, const Style& style);

// Returns a row: its numbers and its stack in one line.
std::string top_row(const live::WatchRow& row, const StackNames& names, const Style& style);

}  // namespace mtrace::text
