#include "analyze/table.h"

#include <algorithm>
#include <tuple>

#include "format/memlog.h"

namespace mtrace::analyze {
namespace {

using profile::Frame;
using profile::Memlog;
using profile::Module;
using profile::Place;

Row row_of(const profile::Entry& entry) {
  Row row;
  row.kind = entry.kind;
  row.bytes = entry.bytes;
  row.blocks = entry.blocks;
  if (profile::find_field(entry.fields, format::kFieldLive) != nullptr) row.live = entry.live;
  row.activity = entry.activity;
  row.stack = entry.stack;
  row.frames = entry.frames;
  row.cut = entry.cut;
  return row;
}

uint64_t stack_identity(const Module& module) {
  const std::string& bytes = module.build_id.empty() ? module.path : module.build_id;
  return format::module_identity(bytes.data(), bytes.size());
}

bool add(profile::Activity& sum, const profile::Activity& more) {
  return !__builtin_add_overflow(sum.allocations, more.allocations, &sum.allocations) &&
         !__builtin_add_overflow(sum.allocated_bytes, more.allocated_bytes, &sum.allocated_bytes) &&
         !__builtin_add_overflow(sum.frees, more.frees, &sum.frees) &&
         !__builtin_add_overflow(sum.freed_bytes, more.freed_bytes, &sum.freed_bytes);
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

Table Table::of(const Memlog& memlog) {
  Table table;
  table.memlog_.modules = memlog.modules;
  for (const profile::Entry& entry : memlog.entries) table.rows_.push_back(row_of(entry));
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

bool Table::merge(const std::vector<Module>& modules, Row row, int depth) {
  if (depth > 0) cut(modules, row, depth);
  row.live.reset();
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
    return !__builtin_add_overflow(known.bytes, row.bytes, &known.bytes) &&
           !__builtin_add_overflow(known.blocks, row.blocks, &known.blocks) &&
           add(known.activity, row.activity);
  }
  same.push_back(rows_.size());
  keys_.push_back(std::move(key));
  rows_.push_back(std::move(row));
  return true;
}

bool Table::merge(const Memlog& memlog, int depth) {
  for (const profile::Entry& entry : memlog.entries) {
    if (!merge(memlog.modules, row_of(entry), depth)) return false;
  }
  return true;
}

bool Table::merge(const Table& other, int depth) {
  for (const Row& row : other.rows_) {
    if (!merge(other.memlog_.modules, row, depth)) return false;
  }
  return true;
}

void drop_empty(std::vector<Row>& rows, bool keep_active) {
  std::erase_if(rows, [keep_active](const Row& row) {
    return row.bytes == 0 && row.blocks == 0 && !(keep_active && row.activity.allocations != 0);
  });
}

void sort(std::vector<Row>& rows, Order order) {
  std::stable_sort(rows.begin(), rows.end(), [order](const Row& a, const Row& b) {
    switch (order) {
      case Order::kBytes:
        return std::tie(b.bytes, a.stack) < std::tie(a.bytes, b.stack);
      case Order::kBlocks:
        return std::tie(b.blocks, a.stack) < std::tie(a.blocks, b.stack);
      case Order::kLive:
        return std::tuple(b.live.value_or(0), a.stack) < std::tuple(a.live.value_or(0), b.stack);
      case Order::kAllocations:
        return std::tie(b.activity.allocations, a.stack) <
               std::tie(a.activity.allocations, b.stack);
      case Order::kStack:
        return a.stack < b.stack;
    }
    return false;
  });
}

int64_t gross_growth(const std::vector<Row>& rows) {
  int64_t sum = 0;
  for (const Row& row : rows) {
    if (row.kind.empty() && row.bytes > 0 && __builtin_add_overflow(sum, row.bytes, &sum)) {
      return INT64_MAX;
    }
  }
  return sum;
}

}  // namespace mtrace::analyze
