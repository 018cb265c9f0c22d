
#include <algorithm>

#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_state.h"

namespace mtrace::ledger {
namespace {

LedgerBlock unpack(const format::LedgerSlot& slot) {
  constexpr unsigned kBirthLow = 64 - format::kSlotAddressBits;
  const uint64_t size =
      slot.value >> format::kSlotStackBits & ((uint64_t{1} << format::kSlotSizeBits) - 1);
  const auto birth = static_cast<uint32_t>(
      slot.key >> format::kSlotAddressBits |
      slot.value >> (format::kSlotStackBits + format::kSlotSizeBits) << kBirthLow);
  return {(slot.key & ((uint64_t{1} << format::kSlotAddressBits) - 1)) << 3, size,
          static_cast<uint32_t>(slot.value & ((1u << format::kSlotStackBits) - 1)),
          unpack_ticks(birth), birth};
}

LedgerBlock unpack(uint64_t word, uint64_t granule) {
  constexpr unsigned kBirthShift = format::kShadowStackBits + format::kShadowSizeBits;
  constexpr unsigned kBirthBits = format::kShadowPlaceShift - kBirthShift;
  const uint64_t birth = word >> kBirthShift & ((uint64_t{1} << kBirthBits) - 1);
  return {granule + (word >> format::kShadowPlaceShift << 3),
          word >> format::kShadowStackBits & ((uint64_t{1} << format::kShadowSizeBits) - 1),
          static_cast<uint32_t>(word & ((1u << format::kShadowStackBits) - 1)),
          unpack_ticks(static_cast<uint32_t>(birth)), static_cast<uint32_t>(birth)};
}

// Those in the shadow of the heap.
bool each_small_block(const LedgerFile& file,
                      const std::function<void(const LedgerBlock&)>& visit) {
  using format::kShadowGranuleBits, format::kShadowPartBits, format::kShadowChunk;
  std::vector<format::LedgerShadowPage> pages(format::kShadowPages);
  std::vector<uint64_t> words(size_t{1} << (kShadowPartBits - kShadowGranuleBits));
  const size_t bytes = words.size() * sizeof words[0];
  bool whole = true;
  for (uint64_t chunk = 0; chunk < format::kShadowPagesChunks; ++chunk) {
    uint64_t address = 0;
    if (!file.read(file.header().shadow + chunk * sizeof address, address)) return false;
    if (address == 0) break;
    if (!file.read(address, pages.data(), pages.size() * sizeof pages[0])) return false;
    for (size_t i = 0; i < pages.size(); ++i) {
      const uint64_t part = pages[i].owner & ~uint64_t{1};
      if (part == pages[i].owner) continue;
      const uint64_t first = pages[i / kShadowChunk * kShadowChunk].chunk;
      if (!file.read(first + i % kShadowChunk * bytes, words.data(), bytes)) {
        whole = false;
        continue;
      }
      for (uint64_t k = 0; k < words.size(); ++k) {
        if (words[k] != 0) visit(unpack(words[k], part + (k << kShadowGranuleBits)));
      }
    }
  }
  return whole;
}

}  // namespace

uint64_t unpack_ticks(uint32_t packed) {
  constexpr unsigned kMantissaBits = 25;
  constexpr unsigned kExponentStep = 4;
  const uint64_t mantissa = packed & ((1u << kMantissaBits) - 1);
  return mantissa << (packed >> kMantissaBits & 3) * kExponentStep;
}

bool each_block(const LedgerFile& file, const std::function<void(const LedgerBlock&)>& visit) {
  constexpr size_t kAtATime = 1u << 14;  // slots
  const format::LedgerRoots& roots = file.header().roots;
  ChunkedCopy<uint64_t, format::kLargeChunk> large(file, roots.large_sizes);
  uint32_t highest = 0;
  bool whole = each_small_block(file, visit);
  whole &= file.read(roots.highest_level, highest);
  std::vector<format::LedgerSlot> slots(kAtATime);
  for (uint32_t number = 0; number <= highest && number < format::kLedgerLevels; ++number) {
    format::LedgerLevel level = {};
    whole &= file.read(roots.levels + number * sizeof level, level);
    const uint64_t count = level.lines * format::kSlotsALine;
    for (uint64_t at = 0; at < count; at += slots.size()) {
      const size_t part = std::min<uint64_t>(slots.size(), count - at);
      if (!file.read(level.slots + at * sizeof slots[0], slots.data(), part * sizeof slots[0])) {
        whole = false;
        break;
      }
      for (size_t i = 0; i < part; ++i) {
        if (slots[i].key <= 1 || slots[i].value == 0) continue;
        LedgerBlock block = unpack(slots[i]);
        if (block.size >= format::kLargeSize) {
          block.size = large.get(static_cast<uint32_t>(block.size - format::kLargeSize));
        }
        visit(block);
      }
    }
  }
  return whole;
}

}  // namespace mtrace::ledger
