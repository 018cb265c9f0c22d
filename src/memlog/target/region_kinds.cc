#include "target/region_kinds.h"

#include <algorithm>
#include <string_view>

#include "format/ledger.h"
#include "target/malloc_heaps.h"
#include "target/resident_pages.h"

namespace mtrace::target {
namespace {

// glibc puts the thread control block at the end of a stack. Its first and third word are its own
// address (sysdeps/x86_64/nptl/tls.h, tcbhead_t), and behind them are the beginning and the size of
// the stack, as neighbours. The first thread's, which is elsewhere, has not these two.
bool ends_with_control_block(PageMap& pages, const Mapping& region) {
  constexpr size_t kWords = 1024;
  constexpr size_t kPieceBytes = 4096;
  uint64_t words[kWords] = {};
  const uint64_t begin = std::max(region.begin, region.end - sizeof words);
  const size_t count = (region.end - begin) / sizeof words[0];
  for (uint64_t at = begin; at < region.end; at += kPieceBytes) {
    pages.read_filled(at, words + (at - begin) / sizeof words[0], kPieceBytes);
  }
  for (size_t i = 0; i + 2 < count; ++i) {
    const uint64_t own = begin + i * sizeof words[0];
    if (words[i] != own || words[i + 2] != own) continue;
    for (size_t at = i + 3; at + 1 < count; ++at) {
      // Not 0: that may well stand before a pointer to what is mapped next.
      const bool begins = words[at] != 0 && words[at] <= own;
      if (begins && words[at] + words[at + 1] == region.end) return true;
    }
  }
  return false;
}

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
    if (region.writable && ends_with_control_block(pages_, region)) return RegionKind::kStack;
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
