#include "model/profile/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "format/memlog.h"
#include "util/text.h"

namespace mtrace::profile {
namespace {

// What the memory is of which the library says `name`.
std::string_view meaning_of(std::string_view name, bool java) {
  if (!name.starts_with(format::kRegionAnonymous)) return name;
  const std::vector<std::string_view> words = util::split(name, ' ');
  const auto has = [&](std::string_view word) {
    return std::find(words.begin() + 2, words.end(), word) != words.end();
  };
  if (words[1].find('x') != words[1].npos) return "code made at run time";
  // HotSpot puts a heap that compressed references reach into the lowest 32 GiB.
  if (java && has(format::kRegionLow)) return "Java heap";
  if (has(format::kRegionSupplied)) return "supplied by the program (userfaultfd)";
  if (has(format::kRegionChunk)) return "V8 heap";
  if (has(format::kRegionStack)) return "stacks of threads";
  return kUnnamedRegion;
}

void add_note(Header& header) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const auto is_that = [](const std::string& note) { return note.starts_with(format::kResident); };
  if (std::any_of(header.notes.begin(), header.notes.end(), is_that)) return;
  const uint64_t resident = header.rss.value_or(0);
  std::string named;
  for (const RegionUse& region : header.regions) {
    if (!format::is_much(region.resident, resident) || region.name == format::kRegionMalloc) {
      continue;
    }
    named +=
        fmt::format("{}{} {} MiB", named.empty() ? "" : ", ", region.name, region.resident / kMiB);
  }
  if (named.empty()) return;
  header.notes.push_back(
      fmt::format("{}{} (of {} MiB)", format::kResident, named, resident / kMiB));
}

}  // namespace

void name_regions(Header& header) {
  const bool java = std::any_of(header.regions.begin(), header.regions.end(), [](const auto& one) {
    return one.name.find("/libjvm.so") != std::string::npos;
  });
  std::vector<RegionUse> named;
  for (const RegionUse& region : header.regions) {
    const std::string_view name = meaning_of(region.name, java);
    const auto same = std::find_if(named.begin(), named.end(),
                                   [&](const RegionUse& one) { return one.name == name; });
    if (same == named.end()) {
      named.push_back({std::string(name), region.resident, region.size});
    } else {
      same->resident += region.resident;
      same->size += region.size;
    }
  }
  std::stable_sort(named.begin(), named.end(),
                   [](const RegionUse& a, const RegionUse& b) { return a.resident > b.resident; });
  header.regions = std::move(named);
  add_note(header);
}

}  // namespace mtrace::profile
