#include "analyze/table.h"

#include <utility>

#include "format/memlog.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Memlog;
using profile::Module;
using profile::Place;

// Whether the report tells how long blocks lived: the library then says how finely, too.
bool times(const Memlog& memlog) { return !memlog.header.resolution.empty(); }

uint64_t stack_identity(const Module& module) {
  const std::string& bytes = module.build_id.empty() ? module.path : module.build_id;
  return format::module_identity(bytes.data(), bytes.size());
}

// Cuts the stack after `depth` frames that have an address, and gives it the id that a process
// with this depth would have given it.
void cut(const std::vector<Module>& modules, Row& row, int depth) {
  format::StackId id;
  size_t keep = 0;
  for (int kept = 0; keep < row.frames.size() && kept < depth; ++keep) {
    const Frame& frame = row.frames[keep];
    if (frame.place == Place::kInlined) continue;
    ++kept;
    id.add(frame.place == Place::kModule ? stack_identity(modules[frame.module]) : 0, frame.offset);
  }
  if (row.frames.empty()) return;
  row.stack = id.value();
  if (keep == row.frames.size()) return;
  row.frames.resize(keep);
  row.cut = true;
}

}  // namespace

Table Table::of(Memlog& memlog) {
  Table table;
  table.memlog_.modules = memlog.modules;
  table.rows_.reserve(memlog.entries.size());
  for (profile::Entry& entry : memlog.entries) {
    table.rows_.push_back(row_of(std::move(entry), times(memlog)));
  }
  memlog.entries.clear();
  return table;
}

// Numbers from 1 for modules that count as the same.
uint64_t Table::identity(const Module& module) {
  const std::string name = module.build_id.empty() ? "p" + module.path : "b" + module.build_id;
  return identities_.try_emplace(name, identities_.size() + 1).first->second;
}

profile::ModuleIndex Table::adopt(const Module& module) {
  const std::string name =
      module.path + '\0' + module.build_id + '\0' + std::to_string(module.generation);
  const auto [place, added] =
      by_name_.try_emplace(name, static_cast<profile::ModuleIndex>(memlog_.modules.size()));
  if (added) memlog_.modules.push_back(module);
  return place->second;
}

bool Table::merge(const std::vector<Module>& modules, Row row, int depth, Combine how) {
  if (depth > 0) cut(modules, row, depth);
  if (how == Combine::kLater) row.live.reset();
  row.further.clear();
  Key key;
  for (Frame& frame : row.frames) {
    if (frame.place == Place::kInlined) continue;
    key.push_back(frame.place == Place::kModule ? identity(modules[frame.module]) : 0);
    key.push_back(frame.offset);
    if (frame.place == Place::kModule) frame.module = adopt(modules[frame.module]);
  }
  std::vector<size_t>& same = by_stack_[row.stack];
  for (const size_t index : same) {
    Row& known = rows_[index];
    if (known.kind != row.kind || keys_[index] != key) continue;
    // A stack of just this depth and one that goes on agree in all that is asked for; in full
    // stacks the cut is part of what they are.
    if (known.cut != row.cut && depth == 0) continue;
    known.cut |= row.cut;
    return add(known, row, how);
  }
  same.push_back(rows_.size());
  keys_.push_back(std::move(key));
  rows_.push_back(std::move(row));
  return true;
}

bool Table::merge(const Memlog& memlog, int depth) {
  for (const profile::Entry& entry : memlog.entries) {
    if (!merge(memlog.modules, row_of(entry, times(memlog)), depth, Combine::kStacks)) return false;
  }
  return true;
}

bool Table::merge(const Table& other, int depth) {
  for (const Row& row : other.rows_) {
    if (!merge(other.memlog_.modules, row, depth, Combine::kStacks)) return false;
  }
  return true;
}

bool Table::append(const Memlog& memlog) {
  // Stacks that are the same to this table may be two entries there, say of two modules that are
  // the same build.
  Table report;
  if (!report.merge(memlog, 0)) return false;
  for (const Row& row : report.rows_) {
    if (!merge(report.memlog_.modules, row, 0, Combine::kLater)) return false;
  }
  return true;
}

void Table::forget_peak() {
  for (Row& row : rows_) row.peak = 0;
}

}  // namespace mtrace::analyze
