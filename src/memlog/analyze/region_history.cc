#include "analyze/region_history.h"

#include <algorithm>
#include <string_view>

#include "format/memlog.h"

namespace mtrace::analyze {
namespace {

// The form of a mapping: a stack has an entry for each, and a report lists only those that changed.
std::string form_of(const profile::Entry& entry) {
  std::string form;
  size_t begin = 0;
  while (begin < entry.fields.size()) {
    const size_t end = std::min(entry.fields.find('\t', begin), entry.fields.size());
    const std::string_view field = std::string_view(entry.fields).substr(begin, end - begin);
    for (const char* key : {format::kFieldProtection, format::kFieldFlags}) {
      if (field.starts_with(std::string(key) + '=')) form += std::string(field) + ' ';
    }
    begin = end + 1;
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
  const bool tells = !header.regions.empty();
  reports_.push_back({header.seq, header.label, header.taken, tells});
  resident_.push_back(header.rss);
  live_.push_back(static_cast<uint64_t>(header.live.bytes));
  // A region that a report does not name has nothing resident then.
  const std::optional<uint64_t> none = tells ? std::optional<uint64_t>(0) : std::nullopt;
  for (RegionRow& row : regions_) {
    row.resident.push_back(none);
    row.size.push_back(none);
  }
  for (const profile::RegionUse& region : header.regions) {
    RegionRow& row = row_of(region.name);
    row.resident.back() = region.resident;
    row.size.back() = region.size;
  }
  mapped_.add(mappings_of(memlog), true);
}

RegionRow& RegionHistory::row_of(const std::string& name) {
  const auto [at, is_new] = by_name_.try_emplace(name, regions_.size());
  if (is_new) {
    RegionRow& row = regions_.emplace_back();
    row.name = name;
    for (const RegionReport& report : reports_) {
      const std::optional<uint64_t> none =
          report.tells_regions ? std::optional<uint64_t>(0) : std::nullopt;
      row.resident.push_back(none);
      row.size.push_back(none);
    }
  }
  return regions_[at->second];
}

}  // namespace mtrace::analyze
