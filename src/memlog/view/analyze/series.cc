#include "view/analyze/series.h"

#include <utility>

#include "view/analyze/row.h"

namespace mtrace::analyze {
namespace {

// `times`: the report tells how long blocks lived.
void add_activity(Held& sum, const profile::Activity& did, bool times) {
  add_to(sum.allocations, did.allocations);
  add_to(sum.allocated_bytes, did.allocated_bytes);
  add_to(sum.frees, did.frees);
  add_to(sum.temporary, did.temporary);
  if (!times && did.lifetime == profile::Lifetime{}) return;
  add_to(sum.timed_frees, did.frees);
  // Fits: each is a product of two 64-bit numbers.
  sum.lived += static_cast<unsigned __int128>(did.lifetime.mean) * did.frees;
}

}  // namespace

void Series::add(const profile::Memlog& memlog, bool state) {
  if (state) {
    const profile::Header& header = memlog.header;
    states_.push_back({header.seq, header.label, header.taken, header.live.bytes});
  }
  take_peak(memlog.header);
  for (const profile::Entry& entry : memlog.entries) {
    Row row = stack_of(entry);
    const size_t stack = stacks_.place(memlog.modules, row, {});
    const auto [place, is_new] = entries_.try_emplace({stack, &entry.call.text()}, members_.size());
    if (is_new) {
      const size_t group = group_of(memlog, entry);
      if (group == values_.size()) values_.emplace_back();
      members_.push_back({group, 0, 0});
    }
    Member& member = members_[place->second];
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
      const auto peak = static_cast<int64_t>(entry.peak);
      add_to(group.now.peak, peak - member.peak);
      member.peak = peak;
      add_activity(group.now, entry.activity, !memlog.header.resolution.empty());
    }
    add_to(group.now.bytes, change);
    add_to(group.now.blocks, entry.blocks);
  }
  if (!state) return;
  for (Group& group : values_) {
    group.shown = group.now;
    add_to(group.shown.bytes, group.before);
    const Point last = group.points.empty() ? Point{} : group.points.back();
    if (group.now.bytes != last.value || group.now.blocks != last.blocks) {
      group.points.push_back({states_.size() - 1, group.now.bytes, group.now.blocks});
    }
  }
}

size_t Series::group_of(const profile::Memlog& memlog, const profile::Entry& entry) {
  Row shortened = stack_of(entry);
  if (by_ == GroupBy::kStack) {
    return groups_.place(memlog.modules, shortened, range_);
  }
  const size_t group = named_.place(shortened, memlog.modules);
  if (group == groups_.rows().size()) {
    Row row;
    row.kind = entry.kind;
    row.group = named_.all()[group];
    groups_.add_row(groups_, std::move(row));
  }
  return group;
}

// Forgets who held the peak before, if there was a higher one since: a report lists all that have a
// share in a new one.
void Series::take_peak(const profile::Header& header) {
  peak_moved_ = header.peak && header.peak->bytes != peak_;
  if (!peak_moved_) return;
  peak_ = header.peak->bytes;
  for (Member& member : members_) member.peak = 0;
  for (Group& group : values_) group.now.peak = 0;
}

std::vector<int64_t> Series::along(const Group& group, int64_t first, int64_t Point::*what) const {
  std::vector<int64_t> out(states_.size(), first);
  for (size_t i = 0; i < group.points.size(); ++i) {
    const size_t end = i + 1 < group.points.size() ? group.points[i + 1].state : out.size();
    for (size_t at = group.points[i].state; at < end; ++at) add_to(out[at], group.points[i].*what);
  }
  return out;
}

std::vector<int64_t> Series::values(size_t row) const {
  return along(values_[row], values_[row].before, &Point::value);
}

std::vector<int64_t> Series::blocks(size_t row) const {
  return along(values_[row], 0, &Point::blocks);
}

}  // namespace mtrace::analyze
