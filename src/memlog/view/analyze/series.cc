#include "view/analyze/series.h"

#include <utility>

#include "view/analyze/row.h"

namespace mtrace::analyze {
namespace {

// `times`: the report tells how long blocks lived.
Turnover turnover_of(const profile::Activity& did, bool times) {
  Turnover turnover = {did.allocations, did.allocated_bytes, did.temporary};
  if (times || did.lifetime != profile::Lifetime{}) {
    turnover.timed_frees = did.frees;
    turnover.lived = static_cast<unsigned __int128>(did.lifetime.mean) * did.frees;
  }
  return turnover;
}

}  // namespace

void add_to(Turnover& sum, const Turnover& more) {
  add_to(sum.allocations, more.allocations);
  add_to(sum.allocated_bytes, more.allocated_bytes);
  add_to(sum.temporary, more.temporary);
  add_to(sum.timed_frees, more.timed_frees);
  sum.lived += more.lived;  // fits: each is a product of two 64-bit numbers
}

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
      add_to(group.peak, peak - member.peak);
      member.peak = peak;
    }
    add_to(group.value, change);
    add_to(group.blocks, entry.blocks);
    if (state && entry.heap()) {
      add_to(group.turnover, turnover_of(entry.activity, !memlog.header.resolution.empty()));
    }
  }
  if (!state) return;
  for (Group& group : values_) {
    group.shown_peak = group.peak;
    const Point last = group.points.empty() ? Point{} : group.points.back();
    if (group.value != last.value || group.blocks != last.blocks) {
      group.points.push_back({states_.size() - 1, group.value, group.blocks});
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

// Forgets who held the peak before, if there was a higher one since.
void Series::take_peak(const profile::Header& header) {
  if (!header.peak || header.peak->bytes == peak_) return;
  peak_ = header.peak->bytes;
  for (Member& member : members_) member.peak = 0;
  for (Group& group : values_) group.peak = 0;
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

size_t History::group_of(const profile::Memlog& memlog, const profile::Entry& entry) {
  Row row = stack_of(entry);
  const size_t stack = whole_.place(memlog.modules, row, {});
  if (stack == group_.size()) {
    Row shortened = stack_of(entry);
    group_.push_back(groups_.place(memlog.modules, shortened, range_));
    if (group_.back() == held_.size()) held_.emplace_back();
  }
  return stack;
}

// What a stack holds is told whole, so that a report that is missing does no harm.
void History::take(Held& held, const profile::Entry& entry, int64_t& live) {
  const auto now = static_cast<int64_t>(entry.live);
  add_to(held.bytes, now - live);
  live = now;
  add_to(held.blocks, entry.blocks);
  add_to(held.allocations, entry.activity.allocations);
  add_to(held.allocated_bytes, entry.activity.allocated_bytes);
  add_to(held.frees, entry.activity.frees);
  add_to(held.temporary, entry.activity.temporary);
  if (peak_moved_) add_to(held.peak, entry.peak);
}

void History::add(const profile::Memlog& memlog) {
  const std::optional<profile::Peak>& peak = memlog.header.peak;
  peak_moved_ = peak && peak->bytes != peak_;  // each is higher than the one before
  if (peak) peak_ = peak->bytes;
  // A report lists all that have a share in a new peak.
  if (peak_moved_) {
    for (Held& held : held_) held.peak = 0;
  }
  for (const profile::Entry& entry : memlog.entries) {
    if (!entry.heap()) continue;
    const size_t stack = group_of(memlog, entry);
    take(held_[group_[stack]], entry, live_[{stack, &entry.call.text()}]);
  }
}

}  // namespace mtrace::analyze
