// Frames and stacks as text, and names for the stacks of a ledger.
#pragma once

#include "model/ledger/ledger_state.h"
#include "model/profile/model.h"
#include "model/symbols/symbolizer.h"
#include "util/prelude.h"
#include "view/analyze/filter.h"
#include "view/analyze/groups.h"
#include "view/analyze/responsible.h"
#include "view/analyze/table.h"
#include "view/json/views.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns the function; if it is unknown, the module's name with the offset.
std::string function_text(const analyze::Table& table, const profile::Frame& frame,
                          const Style& style);

// Returns "f ... 6 frames": a run of frames that one names.
std::string run_text(const analyze::Table& table, const profile::Frame& frame, size_t frames,
                     const Style& style);

// Returns a line for each frame, or for what is folded into one, and one where the stack is cut.
std::vector<std::string> stack_lines(const analyze::Table& table, const analyze::Row& row,
                                     const Style& style);

// Returns the functions in one line, "f < g < h"; folded, without what the first one calls.
std::string stack_line(const analyze::Table& table, const analyze::Row& row, const Style& style);

// Returns the responsible function of a stack and its callers, as far as they tell a reader
// something; at most `most` names, and at least one.
std::vector<std::string> caller_names(const analyze::Table& table, const analyze::Row& row,
                                      size_t most, const Style& style);

// Returns the name of a group and where it is.
std::string group_text(const analyze::Group& group, const Style& style);

// Returns function_text() and the source line; if that is unknown, the module's name.
std::string frame_text(const analyze::Table& table, const profile::Frame& frame,
                       const Style& style);

class StackNames {
 public:
  StackNames(symbols::SearchPath where, analyze::ResponsiblePointer responsible)
      : StackNames(std::make_shared<symbols::Symbolizer>(std::move(where)),
                   std::move(responsible)) {}
  // For several processes, which have most of their modules in common. `by`: what makes a group.
  StackNames(std::shared_ptr<symbols::Symbolizer> resolver, analyze::ResponsiblePointer responsible,
             analyze::GroupBy by = analyze::GroupBy::kFunction)
      : resolver_(std::move(resolver)), groups_(by, responsible) {
    folded_.responsible = std::move(responsible);
  }

  // Makes a group of what the C and C++ runtimes keep to the end. Before learn().
  void fold_runtimes() { folds_runtimes_ = true; }
  // Looks up the names of these stacks of one process. Skips those already known.
  void learn(const ledger::LedgerFile& file, const ledger::LedgerState& state,
             const std::vector<const ledger::LedgerStackState*>& stacks);

  // Returns the lines of the folded stack, safe to print on a terminal; empty before learn().
  std::vector<std::string> frames(const ledger::LedgerStackState& stack) const;
  // Returns these lines, each indented by four blanks.
  std::string indented(const ledger::LedgerStackState& stack) const;
  // Returns a line for each frame, innermost first, without folding.
  std::vector<std::string> all_frames(const ledger::LedgerStackState& stack) const;
  // Returns the functions in one line, the responsible one first: "f < g < h".
  std::string line(const ledger::LedgerStackState& stack) const;
  // Returns where the responsible function is and what it calls: "cache.cc:31 by f ... 6 frames".
  std::string detail(const ledger::LedgerStackState& stack) const;
  // Returns the number of the responsible function, from 1; 0 before learn().
  size_t group_of(const ledger::LedgerStackState& stack) const;
  const analyze::Group& group(size_t number) const { return *groups_.all()[number - 1]; }
  // Adds the id and the frames to the object of a stack (view/json/views.h).
  void put(json::Value& out, const ledger::LedgerStackState& stack) const;
  // Returns whether one of the patterns matches; false before learn().
  bool matches(const ledger::LedgerStackState& stack,
               const std::vector<analyze::StackPattern>& patterns) const;
  // Returns the stack id as 16 hex digits, the same in all reports.
  std::string id(const ledger::LedgerStackState& stack) const;

 private:
  struct Named {
    size_t group;
    size_t row;  // in table_
  };
  // Returns nothing before learn().
  const analyze::Row* row_of(const ledger::LedgerStackState& stack) const;

  std::shared_ptr<symbols::Symbolizer> resolver_;
  analyze::Groups groups_;
  bool folds_runtimes_ = false;
  Style folded_;
  absl::flat_hash_map<uint32_t, Named> known_;  // by ordinal
  analyze::Table table_;                        // rows without numbers
};

// Returns a remark for each reason why live blocks of a ledger are not counted; empty: all are.
// `whole`: of ledger::each_block().
std::string missing_blocks(bool whole, const ledger::LedgerState& state, const Style& style);

}  // namespace mtrace::text
