#include "view/analyze/region_history.h"

#include "view/analyze/row.h"

namespace mtrace::analyze {
namespace {

// The form of a mapping: a stack has an entry for each, and a report lists only those that changed.
std::string form_of(const profile::Entry& entry) {
  std::string form;
  if (!entry.further) return form;
  for (const profile::Field& field : analyze::form_of(entry.fields)) {
    form += field.key + '=' + field.value + ' ';
  }
  return form;
}

// Of a report, the entries of what the program has mapped, as if they were the heap: a Series then
// follows what they hold.
profile::Memlog mappings_of(const profile::Memlog& memlog) {
  profile::Memlog out;
  out.header = memlog.header;
  out.modules = memlog.modules;
  for (const profile::Entry& entry : memlog.entries) {
    if (entry.kind != "mmap") continue;
    out.entries.push_back(entry);
    out.entries.back().kind.clear();
    out.entries.back().call = profile::Name(form_of(entry));
  }
  return out;
}

}  // namespace

std::optional<ByteCourse> course_of(const ByteHistory& history) {
  std::optional<ByteCourse> out;
  for (size_t i = 0; i < history.size(); ++i) {
    if (!history[i]) continue;
    if (!out) out = {*history[i], 0, *history[i], i};
    out->last = *history[i];
    if (*history[i] <= out->most) continue;
    out->most = *history[i];
    out->most_at = i;
  }
  return out;
}

void RegionHistory::add(const profile::Memlog& memlog) {
  const profile::Header& header = memlog.header;
  resident_.push_back(header.rss);
  // A region that a report does not name has nothing resident then.
  untold_.push_back(header.regions.empty() ? std::nullopt : std::optional<uint64_t>(0));
  for (RegionRow& row : regions_) {
    row.resident.push_back(untold_.back());
    row.size.push_back(untold_.back());
  }
  for (const profile::RegionUse& region : header.regions) {
    RegionRow& row = row_of(region.name);
    row.resident.back() = region.resident;
    row.size.back() = region.size;
  }
  mapped_.add(mappings_of(memlog), true);
}

ByteHistory RegionHistory::live() const {
  ByteHistory out;
  for (const State& state : mapped_.states()) out.push_back(static_cast<uint64_t>(state.live));
  return out;
}

RegionRow& RegionHistory::row_of(const std::string& name) {
  const auto [at, is_new] = by_name_.try_emplace(name, regions_.size());
  if (is_new) regions_.push_back({name, untold_, untold_});
  return regions_[at->second];
}

}  // namespace mtrace::analyze
