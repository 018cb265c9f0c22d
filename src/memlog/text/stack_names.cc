#include "text/stack_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/table.h"
#include "format/python.h"
#include "json/stack.h"
#include "live/ledger_notes.h"
#include "live/ledger_state.h"
#include "profile/text.h"
#include "text/frame_text.h"

namespace mtrace::text {
namespace {

profile::Module module_of(const live::LedgerModuleState& known) {
  profile::Module module;
  module.path = known.path;
  module.generation = known.entry.generation;
  module.build_id.assign(reinterpret_cast<const char*>(known.entry.build_id),
                         known.entry.build_id_size);
  module.base = known.entry.base;
  module.described = true;
  return module;
}

// `files`: which of `modules` are source files of Python; both grow.
profile::Frame python_frame(const live::LedgerState& state, uint64_t frame,
                            std::vector<profile::Module>& modules,
                            std::map<std::string, profile::ModuleIndex>& files) {
  const live::PythonFrameText python = live::python_frame(state, frame);
  profile::Frame named;
  named.function = profile::Name(python.function);
  named.source = profile::Name(python.source);
  named.offset = python.offset;
  if (python.module.empty()) return named;
  const auto [file, is_new] =
      files.try_emplace(python.module, static_cast<profile::ModuleIndex>(modules.size()));
  if (is_new) {
    profile::Module module;
    module.path = python.module;
    module.described = module.python = true;
    modules.push_back(std::move(module));
  }
  named.place = profile::Place::kModule;
  named.module = file->second;
  return named;
}

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

void StackNames::learn(const live::LedgerFile& file, const live::LedgerState& state,
                       const std::vector<const live::LedgerStackState*>& stacks) {
  profile::Memlog memlog;
  memlog.header.program = profile::array_text(file.header().program);
  memlog.header.pid = file.header().pid;
  memlog.header.boot_id = profile::array_text(file.header().boot_id);
  live::LedgerModules modules(state);
  std::map<std::string, profile::ModuleIndex> python_files;
  for (const auto& module : state.modules) memlog.modules.push_back(module_of(module));
  std::vector<uint32_t> ordinals;
  for (const live::LedgerStackState* stack : stacks) {
    if (known_.contains(stack->ordinal)) continue;
    profile::Entry entry;
    entry.stack = modules.stack_id(*stack);
    entry.cut = stack->cut;
    profile::Frames::List frames;
    for (const uint64_t address : stack->frames) {
      if (format::PythonFrame::is_one(address)) {
        frames.push_back(python_frame(state, address, memlog.modules, python_files));
        continue;
      }
      const size_t module = modules.find(address, stack->retired);
      profile::Frame frame;
      frame.offset = address;
      if (module != live::LedgerModules::kNone) {
        frame.place = profile::Place::kModule;
        frame.module = static_cast<profile::ModuleIndex>(module);
        frame.offset -= state.modules[module].entry.base;
      }
      frames.push_back(frame);
    }
    entry.frames = std::move(frames);
    memlog.entries.push_back(std::move(entry));
    ordinals.push_back(stack->ordinal);
  }
  if (ordinals.empty()) return;
  resolver_->resolve(memlog);
  const analyze::Table table = analyze::Table::of(memlog);
  for (size_t i = 0; i < ordinals.size(); ++i) {
    const analyze::Row& row = table.rows()[i];
    const size_t group = groups_.place(row, table.modules()) + 1;
    known_[ordinals[i]] = {group, table_.rows().size()};
    table_.add_row(table, row);
  }
}

const analyze::Row* StackNames::row_of(const live::LedgerStackState& stack) const {
  const auto known = known_.find(stack.ordinal);
  return known == known_.end() ? nullptr : &table_.rows()[known->second.row];
}

bool StackNames::matches(const live::LedgerStackState& stack,
                         const std::vector<analyze::StackPattern>& patterns) const {
  const analyze::Row* row = row_of(stack);
  return row != nullptr && std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
           return pattern.matches(row->frames, table_.modules());
         });
}

std::vector<std::string> StackNames::frames(const live::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  if (row == nullptr) return {};
  return stack_lines(table_, *row, folded_);
}

std::vector<std::string> StackNames::all_frames(const live::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  if (row == nullptr) return {};
  return stack_lines(table_, *row, Style());
}

std::string StackNames::line(const live::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  return row == nullptr ? "" : stack_line(table_, *row, folded_);
}

std::string StackNames::detail(const live::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  return row == nullptr ? "" : detail_of(table_, *row, folded_);
}

size_t StackNames::group_of(const live::LedgerStackState& stack) const {
  const auto known = known_.find(stack.ordinal);
  return known == known_.end() ? 0 : known->second.group;
}

void StackNames::put(json::Value& out, const live::LedgerStackState& stack) const {
  out["stack"] = id(stack);
  const analyze::Row* row = row_of(stack);
  if (row != nullptr) json::put_frames(out, table_, *row);
}

std::string StackNames::id(const live::LedgerStackState& stack) const {
  const analyze::Row* row = row_of(stack);
  return fmt::format("{:016x}", row == nullptr ? 0 : row->stack);
}

}  // namespace mtrace::text
