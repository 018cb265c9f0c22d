// What memlog top shows: the head, functions or stacks, and the filter of stacks.
#pragma once

#include <re2/re2.h>

#include "model/ledger/ledger_memlog.h"
#include "util/prelude.h"
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

class StackFilter {
 public:
  // Keeps the stacks with a frame (function, file:line or module) that the expression (RE2)
  // matches, whatever the case; empty: keeps all. Returns why it cannot be used, and then keeps the
  // old one; empty: good.
  std::string set(const std::string& expression);
  bool active() const { return pattern_ != nullptr; }
  const std::string& expression() const { return expression_; }
  // Removes the other rows. `names` must know all of them.
  void apply(std::vector<ledger::WatchRow>& rows, const StackNames& names) const;

 private:
  std::string expression_;
  std::unique_ptr<re2::RE2> pattern_;
};

}  // namespace mtrace::text
