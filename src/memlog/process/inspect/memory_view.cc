#include "process/inspect/memory_view.h"

#include <elf.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "format/ledger.h"
#include "process/inspect/mappings.h"
#include "util/file.h"

namespace mtrace::process {
namespace {

constexpr uint64_t kRedZone = 128;  // bytes below the stack pointer that may be in use
constexpr char kLibraryFile[] = "/libmtrace.so";

// Takes a piece that is in one of the ranges out of it.
void cut(Range piece, std::vector<Range>& ranges) {
  for (Range& range : ranges) {
    if (piece.begin < range.begin || piece.end > range.end) continue;
    const Range rest = {piece.end, range.end};
    range.end = piece.begin;
    ranges.push_back(rest);
    return;
  }
}

// The descriptor on a stack that no thread has any more, otherwise 0. glibc keeps the stack for the
// next thread, and keeps what the descriptor points to. What lies below it nobody will read.
uint64_t left_stack(const Mapping& region, const Snapshot& snapshot, const ReadMemory& read) {
  if (!region.path.empty() || !region.writable) return 0;
  for (const SnapshotThread& thread : snapshot.threads) {
    if (thread.thread_pointer >= region.begin && thread.thread_pointer < region.end) return 0;
  }
  return descriptor_at_end(region, read);
}

// Whether the program may have written the memory and can still reach it, also if it made it
// read-only since, or for writing alone, which processors take for both.
bool may_be_written(const Mapping& region) {
  if (region.writable || !region.readable) return region.writable;
  if (region.path.starts_with('[')) return false;
  // Shared memory without a name has the path of a file that is gone.
  const bool file = region.path.starts_with('/') && !region.path.starts_with("/dev/zero");
  return !file || (!region.shared && region.dirty + region.swapped != 0);
}

bool is_library_memory(const Mapping& region) {
  return region.path.find(kLibraryFile) != std::string::npos ||
         util::base_name_of_mapped(region.path).ends_with(format::kLedgerSuffix);
}

}  // namespace

bool is_device(const std::string& path) {
  return path.starts_with("/dev/") && !path.starts_with("/dev/shm/") &&
         !path.starts_with("/dev/zero");
}

void MemoryView::take_map(std::vector<Mapping> map) {
  map_ = std::move(map);
  for (const Mapping& region : map_) {
    if (region.readable && !region.writable && region.path.starts_with('/')) {
      constant_.push_back({region.begin, region.end});
    }
  }
  const auto library = std::find_if(map_.begin(), map_.end(), [](const Mapping& region) {
    return region.path.find(kLibraryFile) != std::string::npos;
  });
  if (library != map_.end()) library_ = all_of(*library);
}

// The variables of an object that are zero at its start lie behind what is mapped of its file.
Range MemoryView::all_of(const Mapping& first) const {
  Elf64_Ehdr header = {};
  read({{first.begin, first.begin + sizeof header}}, reinterpret_cast<char*>(&header));
  Range all = {first.begin, first.end};
  constexpr size_t kMost = 64;
  for (size_t i = 0; i < std::min<size_t>(header.e_phnum, kMost); ++i) {
    Elf64_Phdr segment = {};
    const uint64_t place = first.begin + header.e_phoff + i * sizeof segment;
    read({{place, place + sizeof segment}}, reinterpret_cast<char*>(&segment));
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t end = first.begin + segment.p_vaddr + segment.p_memsz;
    all.end = std::max(all.end, (end + kPageBytes - 1) & ~(kPageBytes - 1));
  }
  return all;
}

bool MemoryView::is_constant(uint64_t address) const {
  const auto at =
      std::upper_bound(constant_.begin(), constant_.end(), address,
                       [](uint64_t wanted, const Range& range) { return wanted < range.begin; });
  return at != constant_.begin() && address < (at - 1)->end;
}

// Those that are zero at the start of the program lie behind the mapped file.
std::vector<Range> MemoryView::libc_variables() const {
  std::vector<Range> found;
  for (const Mapping& region : map_) {
    if (!region.writable) continue;
    const bool goes_on = !found.empty() && found.back().end == region.begin && region.path.empty();
    if (goes_on || region.path.ends_with("/libc.so.6")) found.push_back({region.begin, region.end});
  }
  return found;
}

std::vector<Range> MemoryView::roots(const Snapshot& snapshot, bool heaps,
                                     const std::vector<Range>& own) const {
  std::vector<Range> found;
  const auto read_one = [this](uint64_t address, void* to, size_t size) {
    read({{address, address + size}}, static_cast<char*>(to));
    return true;
  };
  std::vector<Mapping> map;
  for (const Mapping& joined : map_) {
    for (Mapping& part : heaps_apart(joined, map_, read_one)) map.push_back(std::move(part));
  }
  for (Mapping region : map) {
    if (is_library_memory(region)) continue;
    // The kernel joins the last of the library's variables with what is mapped behind them.
    if (library_.holds(region.begin)) region.begin = std::min(library_.end, region.end);
    if (region.begin == region.end) continue;
    if (!may_be_written(region)) continue;
    if (is_device(region.path)) continue;
    uint64_t begin = region.end;
    for (const SnapshotThread& thread : snapshot.threads) {
      if (thread.stack_pointer < region.begin || thread.stack_pointer >= region.end) continue;
      begin = std::min(begin, std::max(region.begin, thread.stack_pointer - kRedZone));
    }
    if (begin != region.end) {
      found.push_back({begin, region.end});
    } else if (const uint64_t block = left_stack(region, snapshot, read_one); block != 0) {
      found.push_back({block, region.end});
    } else if (heaps || !is_malloc_heap(region, map_, read_one)) {
      found.push_back({region.begin, region.end});
    }
  }
  for (const Range& range : own) cut(range, found);
  for (const SnapshotThread& thread : snapshot.threads) {
    const uint64_t begin = thread.thread_pointer + static_cast<uint64_t>(snapshot.thread_state);
    cut({begin, begin + snapshot.thread_state_size}, found);
  }
  std::vector<Range> parts;
  for (const Range& range : found) {
    const std::vector<Range> filled = this->filled(range);
    parts.insert(parts.end(), filled.begin(), filled.end());
  }
  return parts;
}

}  // namespace mtrace::process
