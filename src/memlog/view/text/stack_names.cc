#include "view/text/stack_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/ledger/ledger_memlog.h"
#include "model/ledger/ledger_state.h"
#include "util/text.h"
#include "view/analyze/table.h"
#include "view/json/stack.h"
#include "view/text/frame_text.h"

namespace mtrace::text {
namespace {

std::string detail_of(const analyze::Table& table, const analyze::Row& row, const Style& style) {
  std::string out;
  for (const analyze::FoldedFrame& line :
       style.responsible->folded(row.frames, table.modules(), row.depth)) {
    if (line.missing()) {
      out = analyze::cut_text(row.depth);
      continue;
    }
    const profile::Frame& frame = row.frames[line.frame];
    if (out.empty()) {
      out = frame.source.empty() ? function_text(table, frame, style) : plain(frame.source);
    } else if (line.inside) {
      out += " by " + function_text(table, frame, style);
    }
  }
  return out;
}

}  // namespace

void StackNames::learn(const ledger::LedgerFile& file, const ledger::LedgerState& state,
                       const std::vector<const ledger::LedgerStackState*>& stacks) {
  profile::Memlog memlog;
  memlog.header.program = util::array_text(file.header().program);
  memlog.header.pid = file.header().pid;
  memlog.header.boot_id = util::array_text(file.header().boot_id);
  profile::ModuleTable modules;
  ledger::LedgerFrames frames(state, [&](const profile::Module& module) {
    const profile::ModuleIndex index = modules.index(module.path, module.generation);
    modules[index] = module;
    return index;
  });
  std::vector<uint32_t> ordinals;
  for (const ledger::LedgerStackState* stack : stacks) {
    if (known_.contains(stack->ordinal)) continue;
    profile::Entry entry;
    entry.stack = frames.id_of(*stack);
    entry.cut = stack->cut;
    entry.frames = frames.of(*stack);
    memlog.entries.push_back(std::move(entry));
    ordinals.push_back(stack->ordinal);
  }
  memlog.modules = modules.take();
  if (ordinals.empty()) return;
  resolver_->resolve(memlog);
  const analyze::Table table = analyze::Table::of(memlog);
  for (size_t i = 0; i < ordinals.size(); ++i) {
    const analyze::Row& row = table.rows()[i];
    const bool kept = folds_runtimes_ && analyze::kept_by_runtimes(row.frames, table.modules());
    const size_t group =
        groups_.place(row, table.modules(), kept ? analyze::kKeptByRuntimes : "") + 1;
    known_[ordinals[i]] = {group, table_.rows().size()};
    table_.add_row(table, row);
  }
}

const analyze::Row* StackNames::row_of(const ledger::LedgerStackState& stack) const {
  const auto known = known_.find(stack.ordinal);
  return known == known_.end() ? nullptr : &table_.rows()[known->second.row];
}

bool StackNames::matches(const ledger::LedgerStackState& stack,
                         const std::vector<analyze::StackPattern>& patterns) const {
  const analyze::Row* row = row_of(stack);
  return row != nullptr && std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
           return pattern.matches(row->frames, table_.modules());
         });
}

std::vector<std::string> StackNames::frames(const ledger::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  if (row == nullptr) return {};
  return stack_lines(table_, *row, folded_);
}

std::string StackNames::indented(const ledger::LedgerStackState& stack) const {
  std::string out;
  for (const std::string& frame : frames(stack)) out += "    " + frame + '\n';
  return out;
}

std::vector<std::string> StackNames::all_frames(const ledger::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  if (row == nullptr) return {};
  return stack_lines(table_, *row, Style());
}

std::string StackNames::line(const ledger::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  return row == nullptr ? "" : stack_line(table_, *row, folded_);
}

std::string StackNames::detail(const ledger::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  return row == nullptr ? "" : detail_of(table_, *row, folded_);
}

size_t StackNames::group_of(const ledger::LedgerStackState& stack) const {
  const auto known = known_.find(stack.ordinal);
  return known == known_.end() ? 0 : known->second.group;
}

void StackNames::put(json::Value& out, const ledger::LedgerStackState& stack) const {
  out["stack"] = id(stack);
  const analyze::Row* row = row_of(stack);
  if (row != nullptr) json::put_frames(out, table_, *row);
}

std::string StackNames::id(const ledger::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  return fmt::format("{:016x}", row == nullptr ? 0 : row->stack);
}

std::string missing_blocks(bool whole, const ledger::LedgerState& state, const Style& style) {
  std::string out;
  if (!whole) {
    out += remark("a part of the ledger could not be read: its blocks are not counted", style);
  }
  if (state.lost_blocks != 0) {
    out += remark("blocks that found no place in the tables are not counted", style);
  }
  return out;
}

}  // namespace mtrace::text
