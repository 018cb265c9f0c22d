#include "model/profile/regions.h"

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

namespace {

// What a block can add most is added at so many means: the root of 2 (1 - exp(-x)) = x.
constexpr double kMostAt = 1.5936;

}  // namespace

uint64_t standard_error(double variance) {
  constexpr double kMost = 9e18;
  return static_cast<uint64_t>(std::min(std::round(std::sqrt(variance)), kMost));
}

double variance_of(uint64_t bytes, uint64_t blocks, uint64_t mean) {
  const auto sum = static_cast<double>(bytes);
  const auto distance = static_cast<double>(mean);
  if (blocks == 0) return sum * distance;
  const auto count = static_cast<double>(blocks);
  const double size = std::min(sum / count, kMostAt * distance);
  return count * size * size / std::expm1((size + 1) / distance);
}

double set_errors(Entry& entry, uint64_t mean) {
  const Activity& did = entry.activity;
  const auto change = static_cast<uint64_t>(entry.bytes);  // modulo 2^64
  // The most that can have been allocated since and still be there, ...
  const uint64_t made = std::max(std::min(did.allocated_bytes, entry.live),
                                 static_cast<uint64_t>(std::max<int64_t>(entry.bytes, 0)));
  const uint64_t gone = made - change;  // ... and then was there before and is not any more
  const bool is_new = change == entry.live && entry.blocks > 0;
  const uint64_t blocks = is_new ? static_cast<uint64_t>(entry.blocks) : 0;
  entry.live_error = standard_error(variance_of(entry.live, blocks, mean));
  const double variance =
      variance_of(made, made == did.allocated_bytes ? did.allocations : blocks, mean) +
      variance_of(gone, gone == did.freed_bytes ? did.frees : 0, mean);
  entry.error = standard_error(variance);
  return variance;
}

}  // namespace mtrace::profile
