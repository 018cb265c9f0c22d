#include "process/inspect/address_space.h"

#include "process/inspect/process.h"

namespace mtrace::process {
namespace {

using heap::HeapBlock;
using heap::HeapPages;

constexpr uint64_t kPage = heap::kHeapPage;

// What glibc's malloc takes for a block.
uint64_t chunk_of(uint64_t size) {
  constexpr uint64_t kLeast = 32;
  return std::max(kLeast, (size + heap::kBlockHeader + 15) & ~uint64_t{15});
}

// Of whole pages.
uint64_t resident_between(const std::vector<Range>& resident, uint64_t begin, uint64_t end) {
  const Range pages = {(begin + kPage - 1) / kPage * kPage, end / kPage * kPage};
  uint64_t found = 0;
  for (const Range& one : parts_within(pages, resident)) found += one.end - one.begin;
  return found;
}

// A heap is one extent. Of one that is mostly reserved, each part with resident pages is, so that
// the work does not grow with what is reserved.
std::vector<Range> extents_of(Range heap, const std::vector<Range>& resident) {
  constexpr uint64_t kSmall = 1 << 30;
  constexpr uint64_t kGap = 2 << 20;  // without a resident page
  if (heap.end - heap.begin <= kSmall) return {heap};
  std::vector<Range> extents;
  for (const Range& one : resident) {
    if (extents.empty() || one.begin - extents.back().end > kGap) {
      extents.push_back(one);
    } else {
      extents.back().end = one.end;
    }
  }
  return extents;
}

// What malloc has mapped for a block that begins 16 bytes behind a page's beginning, by its chunk's
// header (malloc/malloc.c, struct malloc_chunk). Empty: the block has no mapping of its own.
Range mapped_for(const HeapBlock& block, PageMap& pages) {
  constexpr uint64_t kMapped = 2;
  constexpr uint64_t kFlags = 7;
  uint64_t head[2] = {};  // bytes that alignment left before it; size and flags
  const uint64_t begin = block.address - sizeof head;
  if (begin % kPage != 0 || block.size < kPage || !pages.read_filled(begin, head, sizeof head)) {
    return {};
  }
  const uint64_t size = head[1] & ~kFlags;
  const bool whole = size % kPage == 0 && size >= block.size + sizeof head;
  return head[0] == 0 && (head[1] & kMapped) != 0 && whole ? Range{begin, begin + size} : Range{};
}

uint64_t bytes_in(const Mapping& mapping, PageMap::Pages which, PageMap& pages) {
  std::vector<Range> found;
  if (!pages.find(mapping, which, found)) return 0;
  return resident_between(found, mapping.begin, mapping.end);
}

// Takes what lies before `end` off the mapping. Its dirty and huge pages, which the kernel counts
// in the whole only, are shared out as the resident ones. No sum changes.
Mapping split_off(Mapping& rest, uint64_t end, PageMap& pages) {
  Mapping head = rest;
  head.end = rest.begin = end;
  head.resident = std::min(bytes_in(head, PageMap::Pages::kResident, pages), rest.resident);
  const uint64_t filled = bytes_in(head, PageMap::Pages::kFilled, pages);
  head.swapped = std::min(filled - std::min(filled, head.resident), rest.swapped);
  const uint64_t all = std::max(rest.resident / kPage, uint64_t{1});
  for (uint64_t Mapping::*number : {&Mapping::dirty, &Mapping::huge}) {
    head.*number = rest.*number / kPage * (head.resident / kPage) / all * kPage;
  }
  for (uint64_t Mapping::*number :
       {&Mapping::resident, &Mapping::swapped, &Mapping::dirty, &Mapping::huge}) {
    rest.*number -= head.*number;
  }
  return head;
}

// The first that ends behind the mapping's begin.
auto first_within(const std::vector<OwnMapping>& own, const Mapping& mapping) {
  return std::upper_bound(
      own.begin(), own.end(), mapping.begin,
      [](uint64_t address, const OwnMapping& one) { return address < one.end; });
}

// Adds where the program's mappings begin and end, but not between two of one stack.
void cut_between_mappers(const std::vector<OwnMapping>& own, const Mapping& mapping,
                         std::set<uint64_t>& cuts) {
  auto one = first_within(own, mapping);
  while (one != own.end() && one->begin < mapping.end) {
    cuts.insert(one->begin);
    auto last = one++;
    while (one != own.end() && one->begin == last->end && one->stack == last->stack) last = one++;
    cuts.insert(last->end);
  }
}

HeapPages pages_of(Range extent, const std::vector<Range>& resident, uint64_t header) {
  HeapPages pages = {extent.begin, std::vector<bool>((extent.end - extent.begin) / kPage), header};
  for (const Range& one : parts_within(extent, resident)) {
    const auto first = static_cast<ptrdiff_t>((one.begin - extent.begin) / kPage);
    const auto last = static_cast<ptrdiff_t>((one.end - extent.begin) / kPage);
    std::fill(pages.resident.begin() + first, pages.resident.begin() + last, true);
  }
  return pages;
}

}  // namespace

AddressSpace::AddressSpace(pid_t pid, ledger::LedgerFile& ledger) {
  auto map = memory_map(pid, Detail::kSmaps);
  if (!map || map->empty()) {
    throw std::runtime_error(fmt::format("{}: cannot read its mappings: {}", pid,
                                         map ? "it has ended" : std::strerror(errno)));
  }
  read_blocks(ledger);
  PageMap pages(pid);
  const std::vector<OwnMapping> own = own_mappings(pid, ledger);
  cut_mappings(own, *map, pages);
  const std::vector<RegionKind> kinds = region_kinds(pid, *map);
  for (size_t i = 0; i < map->size(); ++i) {
    SpaceRegion region;
    region.mapping = std::move((*map)[i]);
    region.kind = kinds[i];
    for (auto one = first_within(own, region.mapping);
         one != own.end() && one->begin < region.mapping.end; ++one) {
      region.mappers.insert(one->stack);
    }
    regions_.push_back(std::move(region));
  }
  assign_blocks();
  look_for_chunks(pages);
  look_at_pages(pid, pages);
}

void AddressSpace::read_blocks(ledger::LedgerFile& ledger) {
  ledger.refresh();
  has_all_blocks_ = ledger::each_block(ledger, [&](const ledger::LedgerBlock& block) {
    blocks_.push_back({block.address, block.size, block.stack, block.packed_birth});
  });
  std::sort(blocks_.begin(), blocks_.end(),
            [](const HeapBlock& a, const HeapBlock& b) { return a.address < b.address; });
}

// The kernel makes one mapping of neighbours that are alike. Cuts such ones where malloc's heaps
// and large blocks begin and end, but not between two of the blocks; and where another stack has
// mapped what follows, but not the heap of another allocator.
void AddressSpace::cut_mappings(const std::vector<OwnMapping>& own, std::vector<Mapping>& map,
                                PageMap& pages) const {
  constexpr uint64_t kMostRead = uint64_t{64} << 30;  // page by page that takes a second
  const auto read = [&](uint64_t address, void* to, size_t size) {
    return pages.read_filled(address, to, size);
  };
  std::vector<Mapping> parts;
  auto block = blocks_.begin();
  for (Mapping mapping : map) {
    const bool anonymous = mapping.path.empty() && mapping.writable && !mapping.shared;
    const bool quick =
        pages.way() == PageMap::Way::kScan || mapping.end - mapping.begin <= kMostRead;
    std::vector<Range> large;
    bool is_heap = false;
    for (; block != blocks_.end() && block->address < mapping.end; ++block) {
      if (!anonymous || !quick || block->address < mapping.begin) continue;
      const Range found = mapped_for(*block, pages);
      if (found.begin >= mapping.begin && found.end <= mapping.end && found.end != 0) {
        append_range(large, found);
      } else {
        is_heap = true;
      }
    }
    std::set<uint64_t> cuts;
    for (const Range& one : large) cuts.insert({one.begin, one.end});
    for (const Mapping& part : heaps_apart(mapping, map, read)) {
      cuts.insert(part.begin);
    }
    if (quick && !is_heap) cut_between_mappers(own, mapping, cuts);
    for (const uint64_t at : cuts) {
      if (at <= mapping.begin || at >= mapping.end) continue;
      parts.push_back(split_off(mapping, at, pages));
    }
    parts.push_back(std::move(mapping));
  }
  map = std::move(parts);
}

// A block that malloc has mapped begins 16 bytes behind a page's beginning. Other blocks in
// anonymous memory show the heap of another allocator.
void AddressSpace::assign_blocks() {
  constexpr uint64_t kMappedOffset = 16;
  auto region = regions_.begin();
  for (const HeapBlock& block : blocks_) {
    while (region != regions_.end() && region->mapping.end <= block.address) ++region;
    if (region == regions_.end()) return;
    if (block.address < region->mapping.begin) continue;
    region->live_bytes += block.size;
    ++region->live_blocks;
    region->taken += chunk_of(block.size);
    if (region->kind == RegionKind::kAnonymous) {
      const bool mapped = block.address % kPage == kMappedOffset;
      region->kind = mapped ? RegionKind::kLargeBlock : RegionKind::kHeap;
    }
  }
}

// glibc keeps the size of a chunk in the word before the block. Of some blocks that word is looked
// at; the process runs, so a few may have gone meanwhile.
void AddressSpace::look_for_chunks(PageMap& pages) {
  constexpr size_t kLooks = 256;
  constexpr uint64_t kFlags = 7;
  constexpr uint64_t kMostMore = 64;  // what malloc leaves with a block, at most
  uint64_t in_heaps = 0;
  for (const SpaceRegion& region : regions_) in_heaps += region.is_heap() ? region.live_blocks : 0;
  const uint64_t step = in_heaps / kLooks + 1;
  uint64_t number = 0;
  size_t looks = 0;
  size_t chunks = 0;
  auto region = regions_.begin();
  for (const HeapBlock& block : blocks_) {
    while (region != regions_.end() && region->mapping.end <= block.address) ++region;
    if (region == regions_.end()) break;
    if (block.address < region->mapping.begin || !region->is_heap()) continue;
    if (number++ % step != 0) continue;
    uint64_t word = 0;
    if (!pages.read_filled(block.address - sizeof word, &word, sizeof word)) continue;
    const uint64_t size = word & ~kFlags;
    const uint64_t least = chunk_of(block.size);
    ++looks;
    chunks += size % 16 == 0 && size >= least && size <= least + kMostMore ? 1 : 0;
  }
  other_allocator_ = chunks * 2 < looks;
}

// A block may reach over several extents.
void AddressSpace::cut_blocks() {
  auto heap = heaps_.begin();
  for (const HeapBlock& block : blocks_) {
    const auto end_of = [](const HeapPages& one) {
      return one.begin + one.resident.size() * kPage;
    };
    while (heap != heaps_.end() && end_of(*heap) <= block.address) ++heap;
    const uint64_t end = block.address + std::max<uint64_t>(block.size, 1);
    for (auto at = heap; at != heaps_.end() && at->begin < end; ++at) {
      HeapBlock piece = block;
      piece.address = std::max(block.address, at->begin + at->header);
      if (piece.address >= end) continue;
      piece.size = std::min(end, end_of(*at)) - piece.address;
      pieces_.push_back(piece);
    }
  }
}

void AddressSpace::look_at_pages(pid_t pid, PageMap& pages) {
  bool any_in_parts = false;
  for (size_t i = 0; i < regions_.size(); ++i) {
    if (!regions_[i].is_heap()) continue;
    const Mapping& mapping = regions_[i].mapping;
    std::vector<Range> resident;
    if (!pages.find(mapping, PageMap::Pages::kResident, resident)) {
      throw std::runtime_error(fmt::format("{}: cannot read which of its pages are in memory: {}",
                                           pid, std::strerror(errno)));
    }
    const std::vector<Range> extents = extents_of({mapping.begin, mapping.end}, resident);
    any_in_parts |= extents.empty() || extents[0].begin != mapping.begin || extents.size() > 1;
    for (const Range& extent : extents) {
      heaps_.push_back(pages_of(extent, resident, other_allocator_ ? 0 : heap::kBlockHeader));
      heap_regions_.push_back(i);
    }
    find_top(i, resident);
  }
  if (any_in_parts) cut_blocks();
  pinned_ = heap::pinned_pages(pieces(), heaps_);
  look_at_arenas(pages);
  std::stable_sort(tops_.begin(), tops_.end(),
                   [](const HeapTop& a, const HeapTop& b) { return a.gain > b.gain; });
}

void AddressSpace::look_at_arenas(PageMap& pages) {
  std::set<uint64_t> arenas;
  for (size_t i = 0; i < heaps_.size(); ++i) {
    const SpaceRegion& region = regions_[heap_regions_[i]];
    if (region.kind != RegionKind::kArena) continue;
    arenas_.free += pinned_.free_in[i];
    // Such a heap begins with the address of its arena; a part of one does not.
    uint64_t arena = 0;
    if (region.mapping.begin % kArenaHeap == 0 &&
        pages.read_filled(region.mapping.begin, &arena, sizeof arena)) {
      arenas.insert(arena);
    }
  }
  arenas_.arenas = arenas.size();
}

void AddressSpace::find_top(size_t number, const std::vector<Range>& resident) {
  const SpaceRegion& region = regions_[number];
  if (region.live_blocks == 0) return;
  const auto behind = std::lower_bound(
      blocks_.begin(), blocks_.end(), region.mapping.end,
      [](const HeapBlock& one, uint64_t address) { return one.address < address; });
  HeapTop top = {number, *(behind - 1)};
  const uint64_t end = std::min(region.mapping.end, top.block.address + top.block.size);
  top.behind = resident_between(resident, end, region.mapping.end);
  uint64_t before = region.mapping.begin;
  if (region.live_blocks > 1) before = (behind - 2)->address + (behind - 2)->size;
  top.gain = resident_between(resident, before, (end + kPage - 1) / kPage * kPage);
  tops_.push_back(top);
}

std::string unknown_blocks(const ledger::LedgerFile& ledger, const ledger::LedgerState& state,
                           bool whole) {
  if (!whole) return "its ledger lacks a part of the live blocks";
  if (ledger.header().late != 0) return "memlog attached after the program had allocated";
  if (ledger.header().parent != 0) return "it inherited blocks from its parent";
  if (ledger.header().sampled != 0) return "MTRACE_SAMPLE records only some blocks";
  if (ledger.header().recording == 0) return "recording is off";
  if (ledger.header().was_off != 0) return "recording was off for a time";
  if (state.lost_blocks != 0) return "some blocks were not recorded (lost)";
  return {};
}

}  // namespace mtrace::process
