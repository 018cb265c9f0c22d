#include "analyze/series.h"

#include <stdexcept>
#include <utility>

namespace mtrace::analyze {
namespace {

void add_to(int64_t& sum, int64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) {
    throw std::runtime_error("a sum does not fit 64 bits");
  }
}

Row stack_of(const profile::Entry& entry) {
  Row row;
  row.kind = entry.kind;
  row.stack = entry.stack;
  row.frames = entry.frames;
  row.cut = entry.cut;
  return row;
}

}  // namespace

void Series::add(const profile::Memlog& memlog, bool state) {
  if (state) {
    const profile::Header& header = memlog.header;
    states_.push_back({header.seq, header.label, header.taken, header.live.bytes});
  }
  for (const profile::Entry& entry : memlog.entries) {
    Row row = stack_of(entry);
    const size_t stack = stacks_.place(memlog.modules, row, {});
    const bool is_new = stack == members_.size();
    if (is_new) {
      Row shortened = stack_of(entry);
      const size_t group = groups_.place(memlog.modules, shortened, range_);
      if (group == values_.size()) values_.emplace_back();
      members_.push_back({group, 0});
    }
    Member& member = members_[stack];
    Group& group = values_[member.group];
    // What the stack holds is told for heap entries; of others only the change is.
    int64_t change = entry.bytes;
    if (entry.heap()) {
      const auto live = static_cast<int64_t>(entry.live);
      if (is_new) {
        member.live = live - entry.bytes;
        add_to(group.before, member.live);
      }
      change = live - member.live;
      member.live = live;
    }
    add_to(group.value, change);
  }
  if (!state) return;
  for (Group& group : values_) {
    const int64_t last = group.points.empty() ? 0 : group.points.back().value;
    if (group.value != last) group.points.push_back({states_.size() - 1, group.value});
  }
}

std::vector<int64_t> Series::values(size_t row) const {
  const Group& group = values_[row];
  std::vector<int64_t> out(states_.size(), group.before);
  for (size_t i = 0; i < group.points.size(); ++i) {
    const size_t end = i + 1 < group.points.size() ? group.points[i + 1].state : out.size();
    for (size_t at = group.points[i].state; at < end; ++at) add_to(out[at], group.points[i].value);
  }
  return out;
}

}  // namespace mtrace::analyze
