#include "cli/address_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <stdexcept>

#include "live/ledger_state.h"
#include "target/malloc_heaps.h"
#include "target/process.h"
#include "target/resident_pages.h"

namespace mtrace::cli {
namespace {

using analyze::HeapBlock;
using analyze::HeapPages;
using target::RegionKind;

constexpr uint64_t kPage = analyze::kHeapPage;

// What glibc's malloc takes for a block.
uint64_t chunk_of(uint64_t size) {
  constexpr uint64_t kLeast = 32;
  return std::max(kLeast, (size + analyze::kBlockHeader + 15) & ~uint64_t{15});
}

uint64_t resident_between(const HeapPages& pages, uint64_t begin, uint64_t end) {
  uint64_t found = 0;
  for (uint64_t at = (begin + kPage - 1) / kPage * kPage; at + kPage <= end; at += kPage) {
    if (pages.resident[(at - pages.begin) / kPage]) found += kPage;
  }
  return found;
}

}  // namespace

AddressSpace::AddressSpace(pid_t pid, live::LedgerFile& ledger) {
  auto map = target::memory_map(pid, target::Detail::kSmaps);
  if (!map || map->empty()) {
    throw std::runtime_error(fmt::format("{}: cannot read its mappings: {}", pid,
                                         map ? "it has ended" : std::strerror(errno)));
  }
  const std::vector<RegionKind> kinds = target::region_kinds(pid, *map);
  const std::vector<target::OwnMapping> own = target::own_mappings(pid, ledger);
  for (size_t i = 0; i < map->size(); ++i) {
    SpaceRegion region;
    region.mapping = std::move((*map)[i]);
    region.kind = kinds[i];
    const auto mapper = std::upper_bound(
        own.begin(), own.end(), region.mapping.begin,
        [](uint64_t address, const target::OwnMapping& one) { return address < one.end; });
    if (mapper != own.end() && mapper->begin < region.mapping.end) region.mapper = mapper->stack;
    regions_.push_back(std::move(region));
  }
  read_blocks(ledger);
  assign_blocks();
  look_for_chunks(pid);
  look_at_pages(pid);
}

void AddressSpace::read_blocks(live::LedgerFile& ledger) {
  ledger.refresh();
  live::each_block(ledger, [&](const live::LedgerBlock& block) {
    blocks_.push_back({block.address, block.size, block.stack, block.packed_birth});
  });
  std::sort(blocks_.begin(), blocks_.end(),
            [](const HeapBlock& a, const HeapBlock& b) { return a.address < b.address; });
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
void AddressSpace::look_for_chunks(pid_t pid) {
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
    if (!target::read_memory(pid, block.address - sizeof word, &word, sizeof word)) continue;
    const uint64_t size = word & ~kFlags;
    const uint64_t least = chunk_of(block.size);
    ++looks;
    chunks += size % 16 == 0 && size >= least && size <= least + kMostMore ? 1 : 0;
  }
  other_allocator_ = chunks * 2 < looks;
}

void AddressSpace::look_at_pages(pid_t pid) {
  for (size_t i = 0; i < regions_.size(); ++i) {
    if (!regions_[i].is_heap()) continue;
    const target::Mapping& mapping = regions_[i].mapping;
    auto resident = target::resident_pages(pid, {mapping.begin, mapping.end});
    if (!resident) {
      throw std::runtime_error(fmt::format("{}: cannot read which of its pages are in memory: {}",
                                           pid, std::strerror(errno)));
    }
    heaps_.push_back(
        {mapping.begin, std::move(*resident), other_allocator_ ? 0 : analyze::kBlockHeader});
    find_top(i, heaps_.back());
  }
  pinned_ = analyze::pinned_pages(blocks_, heaps_);
  look_at_arenas(pid);
  std::stable_sort(tops_.begin(), tops_.end(),
                   [](const HeapTop& a, const HeapTop& b) { return a.gain > b.gain; });
}

void AddressSpace::look_at_arenas(pid_t pid) {
  std::set<uint64_t> arenas;
  auto free = pinned_.free_in.begin();
  for (const SpaceRegion& region : regions_) {
    if (!region.is_heap()) continue;
    const uint64_t pages = *free++;
    if (region.kind != RegionKind::kArena) continue;
    arenas_.free += pages;
    // Such a heap begins with the address of its arena; a part of one does not.
    uint64_t arena = 0;
    if (region.mapping.begin % target::kArenaHeap == 0 &&
        target::read_memory(pid, region.mapping.begin, &arena, sizeof arena)) {
      arenas.insert(arena);
    }
  }
  arenas_.arenas = arenas.size();
}

void AddressSpace::find_top(size_t number, const HeapPages& pages) {
  const SpaceRegion& region = regions_[number];
  if (region.live_blocks == 0) return;
  const auto behind = std::lower_bound(
      blocks_.begin(), blocks_.end(), region.mapping.end,
      [](const HeapBlock& one, uint64_t address) { return one.address < address; });
  HeapTop top = {number, *(behind - 1)};
  const uint64_t end = std::min(region.mapping.end, top.block.address + top.block.size);
  top.behind = resident_between(pages, end, region.mapping.end);
  uint64_t before = region.mapping.begin;
  if (region.live_blocks > 1) before = (behind - 2)->address + (behind - 2)->size;
  top.gain = resident_between(pages, before, (end + kPage - 1) / kPage * kPage);
  tops_.push_back(top);
}

}  // namespace mtrace::cli
