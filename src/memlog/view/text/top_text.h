// The lines of memlog top.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ledger/watch.h"
#include "view/text/stack_names.h"
#include "view/text/style.h"

namespace mtrace::text {

struct TopView {
  ledger::WatchOrder order = ledger::WatchOrder::kLive;
  bool grouped = true;    // by responsible function
  size_t open = 0;        // group whose stacks are shown, from 1; 0: none
  size_t chosen = 0;      // row
  size_t first = 0;       // index of the topmost row
  uint32_t expanded = 0;  // ordinal of the stack whose frames are shown; 0: none
  std::string heap;       // why the heap is larger than what is live; empty: it is not
  std::string message;    // shown instead of the keys
  bool keys = false;      // show a line with the keys
};

// Returns the lines with the process and the totals, with why its heap is larger, what its stacks
// lack, and a message or, with `keys`, the keys.
std::vector<std::string> top_head(const ledger::LedgerFile& file, const ledger::Watch& watch,
                                  const TopView& view, const Style& style);

// Return a number for a column with a title: bytes without the word "bytes", and a count or rate.
std::string top_bytes(int64_t bytes, bool sign, const Style& style);
std::string top_count(double each, const Style& style);

// The keys of memlog top.

// Returns the line with the most important keys, of at most 80 columns.
std::string top_keys();
// Returns all keys, a line each.
std::vector<std::string> top_help();

}  // namespace mtrace::text
