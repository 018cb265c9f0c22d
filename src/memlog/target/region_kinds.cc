#include "target/region_kinds.h"

#include <algorithm>
#include <string_view>

#include "format/ledger.h"
#include "target/malloc_heaps.h"
#include "target/resident_pages.h"

namespace mtrace::target {
namespace {

RegionKind file_kind(const Mapping& region) {
  const std::string_view path = region.path;
  const std::string_view plain = path.substr(0, path.find(" (deleted)"));
  if (plain.ends_with(format::kLedgerSuffix)) return RegionKind::kTables;
  const bool in_memory = path.starts_with("/dev/shm/") || path.starts_with("/memfd:") ||
                         path.starts_with("/SYSV") || path.starts_with("/dev/zero");
  if (region.shared && in_memory) return RegionKind::kShared;
  return region.writable && !region.shared ? RegionKind::kData : RegionKind::kFile;
}

class Kinds {
 public:
  Kinds(pid_t pid, const std::vector<Mapping>& map) : pages_(pid), map_(map) {}

  RegionKind next(const Mapping& region) {
    const RegionKind kind = of(region);
    // Variables that are zero at the start of the program lie behind what is mapped of its file.
    file_end_ = kind == RegionKind::kData ? region.end : 0;
    return kind;
  }

 private:
  RegionKind of(const Mapping& region) {
    const std::string_view path = region.path;
    if (path.starts_with("[stack")) return RegionKind::kStack;
    if (path == "[heap]") return RegionKind::kHeap;
    if (path.starts_with("[v")) return RegionKind::kKernel;
    if (path.starts_with('/')) return file_kind(region);
    if (!region.readable && !region.writable && !region.executable) return RegionKind::kReserved;
    if (region.shared) return RegionKind::kShared;
    const auto read = [this](uint64_t address, void* to, size_t size) {
      return pages_.read_filled(address, to, size);
    };
    if (is_malloc_heap(region, map_, read)) arena_end_ = region.begin + kArenaHeap;
    if (region.end <= arena_end_) return RegionKind::kArena;
    if (path.empty() && region.begin == file_end_) return RegionKind::kData;
    if (region.writable && control_block_at_end(region, read) != 0) return RegionKind::kStack;
    return RegionKind::kAnonymous;
  }

  PageMap pages_;
  const std::vector<Mapping>& map_;
  uint64_t arena_end_ = 0;
  uint64_t file_end_ = 0;
};

}  // namespace

std::vector<RegionKind> region_kinds(pid_t pid, const std::vector<Mapping>& map) {
  std::vector<RegionKind> found;
  found.reserve(map.size());
  Kinds kinds(pid, map);
  for (const Mapping& region : map) found.push_back(kinds.next(region));
  return found;
}

}  // namespace mtrace::target
