#include "view/text/stack_names.h"

#include "format/memlog.h"
#include "model/ledger/ledger_memlog.h"
#include "model/profile/writer.h"
#include "util/file.h"
#include "util/text.h"
#include "view/analyze/function_name.h"

namespace mtrace::text {
namespace {

using analyze::Table;
using profile::Frame;
using profile::Place;

// The place with the module's name alone: its directory says nothing while reading.
std::string short_place(const Table& table, const Frame& frame, bool with_offset) {
  if (frame.place != Place::kModule) return profile::place(table.names(), frame);
  const profile::Module& module = table.modules()[frame.module];
  const std::string path = plain(module.path);
  const std::string name = util::base_name(path);
  const char* mark = frame.guessed ? "?" : "";
  return with_offset ? fmt::format("({}+0x{:x}){}", name, frame.offset, mark)
                     : fmt::format("({}){}", name, mark);
}

constexpr char kCaller[] = " < ";

std::string line_name(const Table& table, const analyze::Row& row, const analyze::FoldedFrame& line,
                      const Style& style) {
  return line.missing() ? analyze::cut_text(row.depth)
                        : function_text(table, row.frames[line.frame], style);
}

// The functions of a stack; folded, without what the first one calls.
std::vector<std::string> names_of(const Table& table, const analyze::Row& row, const Style& style) {
  std::vector<std::string> out;
  if (style.responsible == nullptr) {
    for (const Frame& frame : row.frames) out.push_back(function_text(table, frame, style));
  } else {
    for (const analyze::FoldedFrame& line :
         style.responsible->folded(row.frames, table.modules(), row.depth)) {
      if (line.inside) continue;
      out.push_back(line_name(table, row, line, style));
    }
  }
  if (row.cut) out.emplace_back(format::kCutLine);
  return out;
}

}  // namespace

std::string function_text(const Table& table, const Frame& frame, const Style& style) {
  if (!frame.function.empty()) {
    return plain(style.full_names               ? frame.function.text()
                 : style.responsible != nullptr ? analyze::brief_name(frame.function)
                                                : analyze::short_name(frame.function));
  }
  return frame.source.empty() ? short_place(table, frame, true) : format::kUnknownFunction;
}

std::string run_text(const Table& table, const Frame& frame, size_t frames, const Style& style) {
  return fmt::format("{} ... {}", function_text(table, frame, style),
                     coloured(count_text(frames, "frame"), kFaint, style));
}

std::string frame_text(const Table& table, const Frame& frame, const Style& style) {
  std::string text = function_text(table, frame, style);
  if (!frame.source.empty()) {
    text += "  " + coloured(plain(frame.source) + (frame.guessed ? " ?" : ""), kFaint, style);
  } else if (!frame.function.empty()) {
    text += "  " + coloured(short_place(table, frame, false), kFaint, style);
  }
  return text;
}

std::vector<std::string> stack_lines(const Table& table, const analyze::Row& row,
                                     const Style& style) {
  std::vector<std::string> out;
  if (style.responsible == nullptr) {
    for (const Frame& frame : row.frames) out.push_back(frame_text(table, frame, style));
  } else {
    for (const analyze::FoldedFrame& line :
         style.responsible->folded(row.frames, table.modules(), row.depth)) {
      if (line.missing()) {
        out.push_back(analyze::cut_text(row.depth));
        continue;
      }
      const Frame& frame = row.frames[line.frame];
      const std::string text = line.frames == 1 ? frame_text(table, frame, style)
                                                : run_text(table, frame, line.frames, style);
      out.push_back(line.inside ? "  by " + text : text);
    }
  }
  if (row.cut) out.emplace_back(format::kCutLine);
  return out;
}

std::string stack_line(const Table& table, const analyze::Row& row, const Style& style) {
  std::string out;
  for (const std::string& name : names_of(table, row, style)) {
    out += (out.empty() ? "" : kCaller) + name;
  }
  return out;
}

std::vector<std::string> caller_names(const Table& table, const analyze::Row& row, size_t most,
                                      const Style& style) {
  std::vector<std::string> out;
  for (const analyze::FoldedFrame& line :
       style.responsible->folded(row.frames, table.modules(), row.depth)) {
    if (out.size() == most) break;
    if (line.inside) continue;
    if (!out.empty() && !style.responsible->tells(row.frames, line.frame, table.modules()))
      continue;
    std::string name = line_name(table, row, line, style);
    // It may call itself.
    if (out.empty() || out.back() != name) out.push_back(std::move(name));
  }
  if (out.empty()) out.emplace_back("...");
  return out;
}

std::string group_text(const analyze::Group& group, const Style& style) {
  const std::string source = plain(group.source);
  return plain(group.name) + (source.empty() ? "" : "  " + coloured(source, kFaint, style));
}

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
  ledger::LedgerFrames frames(state, modules);
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
