#include "process/inspect/mappings.h"

#include <fcntl.h>

#include "format/ledger.h"
#include "process/inspect/memory_view.h"
#include "process/inspect/process.h"
#include "util/machine.h"
#include "util/text.h"

namespace mtrace::process {
namespace {

// Decodes \ooo, by which the kernel writes newlines (in some versions also backslashes) in a path.
std::string without_octal(const std::string& path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path.compare(i, 4, "\\012") == 0) {
      out += '\n';
      i += 3;
    } else {
      out += path[i];
    }
  }
  return out;
}

// "7f12-7f34 rw-p 0000 08:01 123   /path"; false: another line of smaps.
bool read_mapping(const std::string& line, Mapping& mapping) {
  char access[8];
  char device[32];
  unsigned long long begin = 0;
  unsigned long long end = 0;
  unsigned long long offset = 0;
  unsigned long long inode = 0;
  int path = 0;
  if (std::sscanf(line.c_str(), "%llx-%llx %7s %llx %31s %llu %n", &begin, &end, access, &offset,
                  device, &inode, &path) < 6) {
    return false;
  }
  mapping.begin = begin;
  mapping.end = end;
  mapping.offset = offset;
  mapping.readable = access[0] == 'r';
  mapping.writable = access[1] == 'w';
  mapping.executable = access[2] == 'x';
  mapping.shared = access[3] == 's';
  if (path > 0 && static_cast<size_t>(path) < line.size()) {
    mapping.path = without_octal(line.substr(static_cast<size_t>(path)));
  }
  if (inode != 0) mapping.inode = fmt::format("{} {}", device, inode);
  return true;
}

// "Rss:     1234 kB", "VmFlags: rd wr".
void read_detail(std::string_view line, Mapping& mapping) {
  if (line.starts_with("VmFlags:")) {
    const auto has = [&](const char* flag) { return line.find(flag) != std::string_view::npos; };
    mapping.wiped_by_fork = has(" wf");
    mapping.awaits_pages = has(" um") || has(" ui");  // missing pages; those not in page tables
    mapping.huge_tlb = has(" ht");
    return;
  }
  constexpr std::pair<std::string_view, uint64_t Mapping::*> kNumbers[] = {
      {"Rss", &Mapping::resident},         {"Private_Dirty", &Mapping::dirty},
      {"Shared_Dirty", &Mapping::dirty},   {"AnonHugePages", &Mapping::huge},
      {"ShmemPmdMapped", &Mapping::huge},  {"FilePmdMapped", &Mapping::huge},
      {"Private_Hugetlb", &Mapping::huge}, {"Swap", &Mapping::swapped}};
  const std::string_view key = line.substr(0, line.find(':'));
  for (const auto& [name, number] : kNumbers) {
    if (key == name) mapping.*number += status_bytes(line, name);
  }
}

}  // namespace

std::optional<std::vector<Mapping>> memory_map(pid_t pid, Detail detail) {
  const auto maps = read_proc(proc_path(pid, detail == Detail::kSmaps ? "smaps" : "maps"));
  if (!maps) return std::nullopt;
  std::vector<Mapping> found;
  for (const std::string_view line : util::split(*maps, '\n')) {
    Mapping mapping;
    if (read_mapping(std::string(line), mapping)) {
      found.push_back(std::move(mapping));
    } else if (!found.empty()) {
      read_detail(line, found.back());
    }
  }
  return found;
}

std::optional<std::vector<Mapping>> file_mappings(pid_t pid) {
  auto files = memory_map(pid);
  if (!files) return std::nullopt;
  std::erase_if(
      *files, [](const Mapping& mapping) { return mapping.inode.empty() || mapping.path.empty(); });
  return files;
}

std::optional<std::vector<Mapping>> mapped_files(pid_t pid) {
  auto files = file_mappings(pid);
  if (!files) return std::nullopt;
  std::set<std::string> seen;
  std::erase_if(*files, [&](const Mapping& mapping) { return !seen.insert(mapping.inode).second; });
  return files;
}

int open_mapped(pid_t pid, const Mapping& mapping) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const std::string link =
      fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.begin, mapping.end);
  const int file = ::open(link.c_str(), kFlags);
  if (file >= 0) return file;
  return ::open((fmt::format("/proc/{}/root", pid) + mapping.path).c_str(), kFlags);
}

// The heaps of glibc hold nothing but blocks. One that is not the first begins with a structure of
// its own: the arena, the heap before it, and its size.
bool is_malloc_heap(const Mapping& region, const std::vector<Mapping>& map,
                    const ReadMemory& read) {
  constexpr uint64_t kPage = 4096;
  if (region.path == "[heap]") return true;
  if (!region.path.empty() || region.begin % kArenaHeap != 0 || !region.writable) return false;
  uint64_t head[3] = {};
  if (!read(region.begin, head, sizeof head)) return false;
  const auto is_mapped = [&](uint64_t address) {
    return std::any_of(map.begin(), map.end(), [&](const Mapping& one) {
      return one.writable && address >= one.begin && address < one.end;
    });
  };
  return is_mapped(head[0]) && (head[1] == 0 || is_mapped(head[1])) && head[2] % kPage == 0 &&
         head[2] != 0 && head[2] <= kArenaHeap;
}

std::vector<Mapping> heaps_apart(const Mapping& region, const std::vector<Mapping>& map,
                                 const ReadMemory& read) {
  constexpr uint64_t kMostRead = uint64_t{64} << 30;
  std::vector<Mapping> parts = {region};
  const auto cut = [&](uint64_t at) {
    if (at <= parts.back().begin || at >= region.end) return;
    parts.push_back(parts.back());
    parts[parts.size() - 2].end = parts.back().begin = at;
  };
  if (!region.path.empty() || region.shared || region.end - region.begin > kMostRead) return parts;
  // Addresses of the kernel's pages, which a core file may have, are near the highest.
  Mapping heap = region;
  heap.begin += (kArenaHeap - heap.begin % kArenaHeap) % kArenaHeap;
  for (; heap.begin >= region.begin && heap.begin < region.end; heap.begin += kArenaHeap) {
    if (!is_malloc_heap(heap, map, read)) continue;
    cut(heap.begin);
    cut(heap.begin + kArenaHeap);
  }
  return parts;
}

// glibc puts a thread's descriptor at the end of its stack. As neighbours it has the beginning of
// the stack, its size, and that of the guard in front of it, which may be a mapping of its own
// (struct pthread of glibc 2.17 to 2.42). On x86_64 the descriptor begins with the control block,
// whose first and third word are its own address (sysdeps/x86_64/nptl/tls.h, tcbhead_t). The first
// thread's, which is elsewhere, has not the neighbours.
uint64_t descriptor_at_end(const Mapping& region, const ReadMemory& read, bool names_itself) {
  constexpr size_t kWords = 1024;
  constexpr size_t kPieceBytes = 4096;
  constexpr uint64_t kMostBefore = 2048;  // bytes of a descriptor before the neighbours, at most
  uint64_t words[kWords] = {};
  const uint64_t begin = std::max(region.begin, region.end - sizeof words);
  const size_t count = (region.end - begin) / sizeof words[0];
  for (uint64_t at = begin; at < region.end; at += kPieceBytes) {
    read(at, words + (at - begin) / sizeof words[0], kPieceBytes);
  }
  const auto address = [&](size_t i) { return begin + i * sizeof words[0]; };
  for (size_t at = 0; at + 2 < count; ++at) {
    // Not 0: that may well stand before a pointer to what is mapped next.
    const uint64_t bottom = words[at];
    if (bottom == 0 || bottom + words[at + 1] != region.end) continue;
    if (!names_itself) {
      if (bottom != region.begin && bottom + words[at + 2] != region.begin) continue;
      return std::max(region.begin, address(at) - kMostBefore);
    }
    for (size_t i = at; i-- > 0;) {
      const uint64_t own = address(i);
      if (words[i] == own && words[i + 2] == own && bottom <= own) return own;
    }
  }
  return 0;
}
namespace {

using format::LedgerRegionChunk;
using format::LedgerRegionStore;
using format::LedgerRegionTable;

constexpr int kTries = 5;

// The regions of one chunk, whatever it holds, without those that do not follow `found`.
void add_regions(const LedgerRegionChunk& chunk, std::vector<OwnMapping>* found) {
  for (uint32_t i = 0; i < std::min(chunk.count, format::kLedgerRegions); ++i) {
    const format::LedgerRegion& region = chunk.regions[i];
    const uint64_t last = found->empty() ? 0 : found->back().end;
    if (region.start < last || region.end <= region.start) continue;
    found->push_back({region.start, region.end, region.stack});
  }
}

}  // namespace

std::vector<OwnMapping> own_mappings(pid_t pid, const ledger::LedgerFile& ledger) {
  const uint64_t place = ledger.header().regions;
  std::vector<OwnMapping> found;
  for (int tries = 0; place != 0 && tries < kTries; ++tries) {
    found.clear();
    LedgerRegionTable table = {};
    if (!read_memory(pid, place, &table, sizeof table) || table.store == 0) return {};
    std::vector<uint16_t> order(std::min(table.chunks, format::kLedgerRegionChunks));
    bool good = read_memory(pid, table.store + offsetof(LedgerRegionStore, order), order.data(),
                            order.size() * sizeof order[0]);
    for (const uint16_t number : order) {
      LedgerRegionChunk chunk = {};
      const uint64_t at = offsetof(LedgerRegionStore, chunks) + number * sizeof chunk;
      good = good && read_memory(pid, table.store + at, &chunk, sizeof chunk);
      if (good) add_regions(chunk, &found);
    }
    LedgerRegionTable after = {};
    if (!read_memory(pid, place, &after, sizeof after)) return {};
    if (good && table.changes % 2 == 0 && after.changes == table.changes) break;
  }
  return found;  // of a table that always changes, the last of what was read
}
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
    if (region.writable && descriptor_at_end(region, read) != 0) return RegionKind::kStack;
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

}  // namespace mtrace::process
