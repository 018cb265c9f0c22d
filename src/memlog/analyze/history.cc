#include "analyze/history.h"

#include "analyze/checked_sum.h"
#include "analyze/row.h"

namespace mtrace::analyze {

size_t History::group_of(const profile::Memlog& memlog, const profile::Entry& entry) {
  Row row = stack_of(entry);
  const size_t stack = whole_.place(memlog.modules, row, {});
  if (stack == group_.size()) {
    Row shortened = stack_of(entry);
    group_.push_back(groups_.place(memlog.modules, shortened, range_));
    if (group_.back() == held_.size()) held_.emplace_back();
    live_.push_back(0);
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
  const uint64_t peak = memlog.header.peak ? memlog.header.peak->bytes : 0;
  peak_moved_ = peak != peak_;  // each is higher than the one before
  peak_ = peak;
  // A report lists all that have a share in a new peak.
  if (peak_moved_) {
    for (Held& held : held_) held.peak = 0;
  }
  for (const profile::Entry& entry : memlog.entries) {
    if (!entry.heap()) continue;
    const size_t stack = group_of(memlog, entry);
    take(held_[group_[stack]], entry, live_[stack]);
  }
}

}  // namespace mtrace::analyze
